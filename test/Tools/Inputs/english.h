//===-- What is a rule is no prose --------------------------------------------------------===//

struct Size {
  // A comment beside code,
  // over two lines.
  //     What is indented is code.
  int rows; ///< Behind a field.
  const char *text = "behind";
};
