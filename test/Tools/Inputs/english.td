def SomePass : Pass<"some"> {
  let extraClassDeclaration = [{ int behind; }];
  let summary = "puts one behind the other";
  let description = [{
    What it does.

    ```mlir
    %what = "behind"()
    ```

    Requires: nothing.
  }];
  let options = [Option<"size", "size", "int64_t", "8", "The size beside others.">];
}
