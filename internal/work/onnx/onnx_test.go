package onnx_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"scrimp/internal/test/must"
	"scrimp/internal/test/onnxrun"
	"scrimp/internal/work/onnx"
)

// small is a model with a subgraph, an unknown field in each message and each way to hold floats.
func small() []byte {
	g := &onnxrun.Graph{Opset: 17}
	g.Value(false, "x", -1, 2)
	g.Value(true, "y", -1, 2)
	g.Floats("w", false, []float32{1, 2, 3, 4}, 2, 2)
	g.Floats("b", true, []float32{5, 6}, 2)
	g.Node("MatMul", []string{"x", "w"}, "m")
	inner := &onnxrun.Graph{}
	inner.Floats("c", false, []float32{1}, 1)
	inner.Node("Add", []string{"m", "c"}, "t")
	inner.Value(true, "t", -1, 2)
	branch := onnx.AppendBytes(onnx.AppendBytes(nil, 1, "then_branch"), 6, inner.GraphBytes())
	other := onnx.AppendBytes(onnx.AppendBytes(nil, 1, "else_branch"), 6, inner.GraphBytes())
	g.Node("If", []string{"m"}, "i", branch, other)
	g.Node("Add", []string{"i", "b"}, "y")
	g.Raw(999, []byte("unknown in the graph"))
	g.Extra = onnx.AppendBytes(nil, 888, "unknown in the model")
	return g.Bytes()
}

// A copy without changes has the same bytes, unknown fields included.
func TestWrite_CopiesAnUnchangedModelByteForByte(t *testing.T) {
	t.Parallel()
	model := small()
	m, err := onnxrun.Load(model)
	must.Do(t, err)
	var out bytes.Buffer
	if n, err := m.Write(&out, onnx.Edit{}); err != nil || n != int64(len(model)) || !bytes.Equal(out.Bytes(), model) {
		t.Errorf("%d of %d bytes: %v", n, len(model), err)
	}
	if m.Uses["m"] != 3 || m.Uses["c"] != 2 || m.Parameters() != 6 {
		t.Errorf("the uses are %v, the parameters %d", m.Uses, m.Parameters())
	}
}

// A model that is cut anywhere is refused, and never read beyond its end.
func TestRead_RefusesAModelThatIsCut(t *testing.T) {
	t.Parallel()
	model := small()
	whole, _ := onnxrun.Load(model)
	for n := range model {
		m, err := onnxrun.Load(model[:n])
		if err == nil && len(m.Nodes) != len(whole.Nodes) {
			t.Errorf("%d of %d bytes are a model", n, len(model))
		}
	}
}

// Hostile models are refused in words, and cost little.
func TestRead_RefusesHostileModels(t *testing.T) {
	t.Parallel()
	graph := func(f func(g *onnxrun.Graph)) []byte {
		g := &onnxrun.Graph{Opset: 17}
		g.Value(false, "x", 2)
		f(g)
		return g.Bytes()
	}
	deep := []byte{}
	for range 10_000 {
		node := onnx.AppendBytes(nil, 5, onnx.AppendBytes(onnx.AppendBytes(nil, 1, "body"), 6, deep))
		deep = onnx.AppendBytes(nil, 1, node)
	}
	for want, model := range map[string][]byte{
		"subgraphs more than 32 deep": graph(func(g *onnxrun.Graph) { g.Raw(1, deep[4:]) }),
		"has a cycle or is not sorted": graph(func(g *onnxrun.Graph) {
			g.Node("Add", []string{"x", "b"}, "a")
			g.Node("Add", []string{"x", "a"}, "b")
		}),
		"a second time": graph(func(g *onnxrun.Graph) {
			g.Node("Relu", []string{"x"}, "a")
			g.Node("Relu", []string{"x"}, "a")
		}),
		"impossible shape":       graph(func(g *onnxrun.Graph) { g.Tensor("w", 1, 9, nil, 1<<39, 1<<39) }),
		"the impossible shape [": graph(func(g *onnxrun.Graph) { g.Tensor("w", 1, 9, nil, -1) }),
		"8 bytes of elements":    graph(func(g *onnxrun.Graph) { g.Tensor("w", 1, 9, make([]byte, 8), 1000, 1000) }),
		"two tensors": graph(func(g *onnxrun.Graph) {
			g.Floats("w", false, []float32{1}, 1)
			g.Floats("w", false, []float32{1}, 1)
		}),
		"two graphs":              append(small(), small()...),
		"it has no graph":         onnx.AppendInt(nil, 1, 8),
		"claims 1099511627776":    append(binary.AppendUvarint([]byte{7<<3 | 2}, 1<<40), 1, 2, 3),
		"more than 64 bits":       bytes.Repeat([]byte{0xff}, 12),
		"the wire type 3":         {7<<3 | 3},
		"nothing computes the":    graph(func(g *onnxrun.Graph) { g.Value(true, "nowhere", 1) }),
		"text or list of 100000 ": graph(func(g *onnxrun.Graph) { g.Node(strings.Repeat("x", 100_000), nil, "a") }),
		"training graphs":         graph(func(g *onnxrun.Graph) { g.Extra = onnx.AppendBytes(nil, 20, "") }),
	} {
		_, err := onnxrun.Load(model)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "model: ") {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// External data moves into the copy; places outside the file are refused.
func TestRead_ReadsExternalData(t *testing.T) {
	t.Parallel()
	data := []byte{9, 9, 9, 9, 0, 0, 128, 63, 0, 0, 0, 64} // 1 and 2 after four bytes
	read := func(model []byte) (*onnx.Model, error) {
		return onnx.Read(onnx.NewSource("model", bytes.NewReader(model), int64(len(model))),
			func(place string) (io.ReaderAt, int64, error) {
				if place != "w.bin" {
					return nil, 0, errors.New("no such file")
				}
				return bytes.NewReader(data), int64(len(data)), nil
			})
	}
	m, err := read(onnxrun.External("w.bin", "4", "8"))
	must.Do(t, err)
	var out bytes.Buffer
	if _, err := m.Write(&out, onnx.Edit{}); err != nil {
		t.Fatal(err)
	}
	inside, err := onnxrun.Load(out.Bytes())
	must.Do(t, err)
	y, err := onnxrun.Run(inside, onnxrun.Value{Dims: []int{1, 2}, V: []float64{10, 100}})
	if err != nil || y.V[0] != 210 {
		t.Errorf("%v: %v", y, err)
	}
	for _, where := range [][2]string{{"13", "8"}, {"-1", "8"}, {"4", "9"}, {"4", "x"}, {"8", "4"}} {
		if _, err := read(onnxrun.External("w.bin", where[0], where[1])); err == nil {
			t.Errorf("%v is accepted", where)
		}
	}
	if _, err := onnxrun.Load(onnxrun.External("w.bin", "4", "8")); err == nil {
		t.Error("external data without a folder is accepted")
	}
}

// vast is a model of a gibibyte: a head, a weight of zeros that no memory holds, and a tail.
type vast struct {
	head, tail []byte
	size, read int64
}

func (v *vast) ReadAt(b []byte, at int64) (int, error) {
	v.read += int64(len(b))
	clear(b)
	for i := range b {
		switch at := at + int64(i); {
		case at < int64(len(v.head)):
			b[i] = v.head[at]
		case at >= v.size-int64(len(v.tail)):
			b[i] = v.tail[at-v.size+int64(len(v.tail))]
		}
	}
	return len(b), nil
}

// The structure of a model of 1 GiB is read from less than 256 KiB of it.
func TestRead_LeavesWeightsOnDisk(t *testing.T) {
	t.Parallel()
	const weight = 1 << 30
	g := &onnxrun.Graph{Opset: 17}
	g.Value(false, "x", 1<<14)
	g.Node("MatMul", []string{"x", "w"}, "y")
	g.Value(true, "y", 1<<14)
	bytesOf := func(num int, size int) []byte {
		return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(num)<<3|2), uint64(size))
	}
	tensor := onnx.AppendInt(onnx.AppendInt(onnx.AppendInt(nil, 1, 1<<14), 1, 1<<14), 2, onnx.Float)
	tensor = append(onnx.AppendBytes(tensor, 8, "w"), bytesOf(9, weight)...)
	tensor = append(bytesOf(5, len(tensor)+weight), tensor...)
	v := &vast{head: append(bytesOf(7, len(tensor)+weight+len(g.GraphBytes())), tensor...), tail: g.GraphBytes()}
	v.size = int64(len(v.head)+len(v.tail)) + weight
	m, err := onnx.Read(onnx.NewSource("vast", v, v.size), nil)
	if err != nil || m.Parameters() != weight/4 || v.read > 256<<10 {
		t.Errorf("%d bytes were read: %v", v.read, err)
	}
}

// FuzzRead: any bytes are refused or are a model, and what is written of it can be read again.
func FuzzRead(f *testing.F) {
	f.Add(small())
	f.Add(onnxrun.External("w.bin", "4", "8"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := onnxrun.Load(b)
		if err != nil {
			return
		}
		var out bytes.Buffer
		if _, err := m.Write(&out, onnx.Edit{}); err != nil {
			t.Fatal(err)
		}
		if again, err := onnxrun.Load(out.Bytes()); err != nil || len(again.Nodes) != len(m.Nodes) {
			t.Fatalf("the copy: %v", err)
		}
	})
}
