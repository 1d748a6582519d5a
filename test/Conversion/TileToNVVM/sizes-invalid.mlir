// RUN: attn-opt %s --convert-tile-to-nvvm --split-input-file --verify-diagnostics

// Code is made by the element: of no more than a thread can hold.
func.func @tile(%a: f32) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{expected at most 1024 elements of a tile in a thread, got 4096 of 'tensor<64x8192xf32, #tile.acc<units = 1>>'}}
  %t = tile.broadcast %a : f32 -> tensor<64x8192xf32, #tile.acc<units = 1>>
  return
}

// -----

func.func @place() attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  // expected-error@+1 {{expected at most 232448 bytes of shared memory, got 8388608}}
  %s = tile.alloc_shared : !tile.shared<65536x64xbf16, swizzle = 128>
  return
}

// -----

!t = tensor<64x2048xf32, #tile.acc<units = 1>>

// expected-error@+1 {{expected a thread to compute at most 131072 elements of tiles one after the other, got 131136}}
func.func @program(%a: f32) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %t0 = tile.broadcast %a : f32 -> !t
  %t1 = tile.broadcast %a : f32 -> !t
  %t2 = tile.broadcast %a : f32 -> !t
  %t3 = tile.broadcast %a : f32 -> !t
  %t4 = tile.broadcast %a : f32 -> !t
  %t5 = tile.broadcast %a : f32 -> !t
  %t6 = tile.broadcast %a : f32 -> !t
  %t7 = tile.broadcast %a : f32 -> !t
  %t8 = tile.broadcast %a : f32 -> !t
  %t9 = tile.broadcast %a : f32 -> !t
  %t10 = tile.broadcast %a : f32 -> !t
  %t11 = tile.broadcast %a : f32 -> !t
  %t12 = tile.broadcast %a : f32 -> !t
  %t13 = tile.broadcast %a : f32 -> !t
  %t14 = tile.broadcast %a : f32 -> !t
  %t15 = tile.broadcast %a : f32 -> !t
  %t16 = tile.broadcast %a : f32 -> !t
  %t17 = tile.broadcast %a : f32 -> !t
  %t18 = tile.broadcast %a : f32 -> !t
  %t19 = tile.broadcast %a : f32 -> !t
  %t20 = tile.broadcast %a : f32 -> !t
  %t21 = tile.broadcast %a : f32 -> !t
  %t22 = tile.broadcast %a : f32 -> !t
  %t23 = tile.broadcast %a : f32 -> !t
  %t24 = tile.broadcast %a : f32 -> !t
  %t25 = tile.broadcast %a : f32 -> !t
  %t26 = tile.broadcast %a : f32 -> !t
  %t27 = tile.broadcast %a : f32 -> !t
  %t28 = tile.broadcast %a : f32 -> !t
  %t29 = tile.broadcast %a : f32 -> !t
  %t30 = tile.broadcast %a : f32 -> !t
  %t31 = tile.broadcast %a : f32 -> !t
  %t32 = tile.broadcast %a : f32 -> !t
  %t33 = tile.broadcast %a : f32 -> !t
  %t34 = tile.broadcast %a : f32 -> !t
  %t35 = tile.broadcast %a : f32 -> !t
  %t36 = tile.broadcast %a : f32 -> !t
  %t37 = tile.broadcast %a : f32 -> !t
  %t38 = tile.broadcast %a : f32 -> !t
  %t39 = tile.broadcast %a : f32 -> !t
  %t40 = tile.broadcast %a : f32 -> !t
  %t41 = tile.broadcast %a : f32 -> !t
  %t42 = tile.broadcast %a : f32 -> !t
  %t43 = tile.broadcast %a : f32 -> !t
  %t44 = tile.broadcast %a : f32 -> !t
  %t45 = tile.broadcast %a : f32 -> !t
  %t46 = tile.broadcast %a : f32 -> !t
  %t47 = tile.broadcast %a : f32 -> !t
  %t48 = tile.broadcast %a : f32 -> !t
  %t49 = tile.broadcast %a : f32 -> !t
  %t50 = tile.broadcast %a : f32 -> !t
  %t51 = tile.broadcast %a : f32 -> !t
  %t52 = tile.broadcast %a : f32 -> !t
  %t53 = tile.broadcast %a : f32 -> !t
  %t54 = tile.broadcast %a : f32 -> !t
  %t55 = tile.broadcast %a : f32 -> !t
  %t56 = tile.broadcast %a : f32 -> !t
  %t57 = tile.broadcast %a : f32 -> !t
  %t58 = tile.broadcast %a : f32 -> !t
  %t59 = tile.broadcast %a : f32 -> !t
  %t60 = tile.broadcast %a : f32 -> !t
  %t61 = tile.broadcast %a : f32 -> !t
  %t62 = tile.broadcast %a : f32 -> !t
  %t63 = tile.broadcast %a : f32 -> !t
  %t64 = tile.broadcast %a : f32 -> !t
  %t65 = tile.broadcast %a : f32 -> !t
  %t66 = tile.broadcast %a : f32 -> !t
  %t67 = tile.broadcast %a : f32 -> !t
  %t68 = tile.broadcast %a : f32 -> !t
  %t69 = tile.broadcast %a : f32 -> !t
  %t70 = tile.broadcast %a : f32 -> !t
  %t71 = tile.broadcast %a : f32 -> !t
  %t72 = tile.broadcast %a : f32 -> !t
  %t73 = tile.broadcast %a : f32 -> !t
  %t74 = tile.broadcast %a : f32 -> !t
  %t75 = tile.broadcast %a : f32 -> !t
  %t76 = tile.broadcast %a : f32 -> !t
  %t77 = tile.broadcast %a : f32 -> !t
  %t78 = tile.broadcast %a : f32 -> !t
  %t79 = tile.broadcast %a : f32 -> !t
  %t80 = tile.broadcast %a : f32 -> !t
  %t81 = tile.broadcast %a : f32 -> !t
  %t82 = tile.broadcast %a : f32 -> !t
  %t83 = tile.broadcast %a : f32 -> !t
  %t84 = tile.broadcast %a : f32 -> !t
  %t85 = tile.broadcast %a : f32 -> !t
  %t86 = tile.broadcast %a : f32 -> !t
  %t87 = tile.broadcast %a : f32 -> !t
  %t88 = tile.broadcast %a : f32 -> !t
  %t89 = tile.broadcast %a : f32 -> !t
  %t90 = tile.broadcast %a : f32 -> !t
  %t91 = tile.broadcast %a : f32 -> !t
  %t92 = tile.broadcast %a : f32 -> !t
  %t93 = tile.broadcast %a : f32 -> !t
  %t94 = tile.broadcast %a : f32 -> !t
  %t95 = tile.broadcast %a : f32 -> !t
  %t96 = tile.broadcast %a : f32 -> !t
  %t97 = tile.broadcast %a : f32 -> !t
  %t98 = tile.broadcast %a : f32 -> !t
  %t99 = tile.broadcast %a : f32 -> !t
  %t100 = tile.broadcast %a : f32 -> !t
  %t101 = tile.broadcast %a : f32 -> !t
  %t102 = tile.broadcast %a : f32 -> !t
  %t103 = tile.broadcast %a : f32 -> !t
  %t104 = tile.broadcast %a : f32 -> !t
  %t105 = tile.broadcast %a : f32 -> !t
  %t106 = tile.broadcast %a : f32 -> !t
  %t107 = tile.broadcast %a : f32 -> !t
  %t108 = tile.broadcast %a : f32 -> !t
  %t109 = tile.broadcast %a : f32 -> !t
  %t110 = tile.broadcast %a : f32 -> !t
  %t111 = tile.broadcast %a : f32 -> !t
  %t112 = tile.broadcast %a : f32 -> !t
  %t113 = tile.broadcast %a : f32 -> !t
  %t114 = tile.broadcast %a : f32 -> !t
  %t115 = tile.broadcast %a : f32 -> !t
  %t116 = tile.broadcast %a : f32 -> !t
  %t117 = tile.broadcast %a : f32 -> !t
  %t118 = tile.broadcast %a : f32 -> !t
  %t119 = tile.broadcast %a : f32 -> !t
  %t120 = tile.broadcast %a : f32 -> !t
  %t121 = tile.broadcast %a : f32 -> !t
  %t122 = tile.broadcast %a : f32 -> !t
  %t123 = tile.broadcast %a : f32 -> !t
  %t124 = tile.broadcast %a : f32 -> !t
  %t125 = tile.broadcast %a : f32 -> !t
  %t126 = tile.broadcast %a : f32 -> !t
  %t127 = tile.broadcast %a : f32 -> !t
  %more = tile.broadcast %a : f32 -> tensor<64x128xf32, #tile.acc<units = 1>>
  return
}
