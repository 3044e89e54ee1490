package onnx

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// message builds a Protocol Buffers message: the tests build their ONNX files with it.
type message []byte

func (m message) number(field protowire.Number, v int64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), uint64(v))
}

func (m message) bytes(field protowire.Number, b []byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), b)
}

func (m message) text(field protowire.Number, s ...string) message {
	for _, s := range s {
		m = m.bytes(field, []byte(s))
	}
	return m
}

func (m message) entry(field protowire.Number, key, value string) message {
	return m.bytes(field, message{}.text(1, key).text(2, value))
}

// model is a ModelProto of a graph's parts.
func model(parts ...message) []byte {
	var graph message
	for _, p := range parts {
		graph = append(graph, p...)
	}
	return message{}.number(1, 8).bytes(7, graph)
}

// op is a node as a part of a graph.
func op(name, operator string, inputs []string, output string, more ...message) message {
	n := message{}.text(1, inputs...).text(2, output).text(3, name).text(4, operator)
	for _, m := range more {
		n = append(n, m...)
	}
	return message{}.bytes(1, n)
}

// float32s is an initializer of type FLOAT in raw_data, as a part of a graph.
func float32s(name string, shape []int, values ...float32) message {
	return tensorOf(name, 1, shape, message{}.bytes(9, bytesOf(values)))
}

func tensorOf(name string, dtype int64, shape []int, data message) message {
	var m message
	for _, d := range shape {
		m = m.number(1, int64(d))
	}
	return message{}.bytes(5, append(m.number(2, dtype).text(8, name), data...))
}

func bytesOf(values []float32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// integer, float and integers are attributes as parts of a node.
func integer(name string, v int64) message {
	return message{}.bytes(5, message{}.text(1, name).number(3, v))
}

func float(name string, v float32) message {
	a := protowire.AppendTag(message{}.text(1, name), 2, protowire.Fixed32Type)
	return message{}.bytes(5, protowire.AppendFixed32(a, math.Float32bits(v)))
}

func integers(name string, v ...int64) message {
	var packed []byte
	for _, v := range v {
		packed = protowire.AppendVarint(packed, uint64(v))
	}
	return message{}.bytes(5, message{}.text(1, name).bytes(8, packed))
}
