func.func @attention(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>, %slopes: tensor<?xf32>) -> (tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>) {
  %o, %l = attn.attention %q, %k, %v score(%s, %b, %h, %m, %n) {
 %sl = tensor.extract %slopes[%h] : tensor<?xf32>
 %d = arith.subi %m, %n : index
 %i = arith.index_cast %d : index to i32
 %x = arith.sitofp %i : i32 to f32
 %c = arith.constant 0.01 : f32
 %y = arith.mulf %x, %c : f32
 %z = arith.mulf %y, %sl : f32
 %t = arith.subf %s, %z : f32
 attn.yield %t : f32
 }
    : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>
  return %o, %l : tensor<?x?x?x64xbf16>, tensor<?x?x?xf32>
}
