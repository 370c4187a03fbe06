"""A graph as nodes of ONNX: what each op becomes, one small file for each kind of op."""
