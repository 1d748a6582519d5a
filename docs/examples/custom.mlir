// Two global tokens and a window of 255, with a bias of slope[h] for each 100 positions of distance.
func.func @custom(%q: tensor<?x?x?x128xf32>, %k: tensor<?x?x?x128xf32>, %v: tensor<?x?x?x128xf32>, %slopes: tensor<?xf32>)
    -> (tensor<?x?x?x128xf32>, tensor<?x?x?xf32>) {
  %unit = arith.constant 0.01 : f32
  %c2 = arith.constant 2 : index
  %c255 = arith.constant 255 : index
  %o, %lse = attn.attention %q, %k, %v
    score(%s, %b, %h, %m, %n) {
      %slope = tensor.extract %slopes[%h] : tensor<?xf32>
      %distance = arith.subi %m, %n : index
      %i = arith.index_cast %distance : index to i32
      %x = arith.sitofp %i : i32 to f32
      %far = arith.mulf %x, %unit : f32
      %bias = arith.mulf %slope, %far : f32
      %t = arith.subf %s, %bias : f32
      attn.yield %t : f32
    }
    mask(%b, %h, %m, %n) {
      %global = arith.cmpi slt, %n, %c2 : index
      %low = arith.subi %m, %c255 : index
      %near = arith.cmpi sge, %n, %low : index
      %seen = arith.ori %global, %near : i1
      %past = arith.cmpi sle, %n, %m : index
      %keep = arith.andi %seen, %past : i1
      attn.yield %keep : i1
    }
    : tensor<?x?x?x128xf32>, tensor<?x?x?x128xf32>, tensor<?x?x?x128xf32> -> tensor<?x?x?x128xf32>, tensor<?x?x?xf32>
  return %o, %lse : tensor<?x?x?x128xf32>, tensor<?x?x?xf32>
}
