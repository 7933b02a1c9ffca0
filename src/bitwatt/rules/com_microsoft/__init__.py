"""Rules for what ONNX Runtime's optimizer and quantizers put into graphs, one file for each family."""
