"""Rules for the operators of ONNX's default domain, one file for each family. Arguments are named by its schemas."""
