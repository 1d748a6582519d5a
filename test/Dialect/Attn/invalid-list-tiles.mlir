// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @tile_status_c1(%empty: tensor<2xi32>, %x: index) {
  // expected-error@+1 {{expected a status of one number, got 'tensor<2xi32>'}}
  %status = attn.tile_status %x rows, %x keys size 128 outs(%empty)
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sle, %n, %m : index
      attn.yield %keep : i1
    }
    : tensor<2xi32> -> tensor<2xi32>
  return
}

// -----

func.func @tile_status_c2(%empty: tensor<1xi32>, %x: index) {
  // expected-error@+1 {{expected a mask, without which everything is kept}}
  %status = attn.tile_status %x rows, %x keys size 128 outs(%empty) : tensor<1xi32> -> tensor<1xi32>
  return
}

// -----

func.func @attention_c10_tile_status(%empty: tensor<1xi32>, %x: index) {
  // expected-error@+1 {{expected 'at' to hold 4 positions (b, h, m, n), got 1}}
  %status = attn.tile_status %x rows, %x keys size 128 at(%x) outs(%empty)
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sle, %n, %m : index
      attn.yield %keep : i1
    }
    : tensor<1xi32> -> tensor<1xi32>
  return
}

// -----

func.func @list_tiles_c1(%tiles: tensor<?xi32>, %counts: tensor<3xi32>) {
  // expected-error@+1 {{expected two counts, got 'tensor<3xi32>'}}
  %lists:2 = attn.list_tiles %tiles size 128 outs(%tiles, %counts) : tensor<?xi32>, tensor<?xi32>, tensor<3xi32> -> tensor<?xi32>, tensor<3xi32>
  return
}

// -----

func.func @list_tiles_c2(%status: tensor<4xi32>, %tiles: tensor<3xi32>, %counts: tensor<2xi32>) {
  // expected-error@+1 {{expected the number of tiles of status and tiles to agree, got 4 and 3}}
  %lists:2 = attn.list_tiles %status size 128 outs(%tiles, %counts) : tensor<4xi32>, tensor<3xi32>, tensor<2xi32> -> tensor<3xi32>, tensor<2xi32>
  return
}

// -----

func.func @destination_c2_list_tiles(%tiles: tensor<?xi32>, %counts: tensor<2xi32>) {
  // expected-error@+1 {{expected results of the destinations' types}}
  %lists = attn.list_tiles %tiles size 128 outs(%tiles, %counts) : tensor<?xi32>, tensor<?xi32>, tensor<2xi32> -> tensor<?xi32>
  return
}
