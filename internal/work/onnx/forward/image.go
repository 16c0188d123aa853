package forward

import (
	"fmt"
	"math"
	"slices"
)

// window is a kernel that slides over the last two dimensions of an image.
type window struct{ kernel, stride, dilation, before, after, out [2]int }

// pad sets the padding of a window: none, or that at the two beginnings and the two ends.
func (w *window) pad(v []int64) error {
	if len(v) == 0 {
		return nil
	}
	if len(v) != 4 || slices.Min(v) < 0 || slices.Max(v) > maxSide {
		return fmt.Errorf("pads=%v are not four numbers from 0 to %d", v, maxSide)
	}
	w.before, w.after = [2]int{int(v[0]), int(v[1])}, [2]int{int(v[2]), int(v[3])}
	return nil
}

// windowOf reads the attributes of a window over an image with the kernel.
func windowOf(c *call, x Value, kernel [2]int) (w window, err error) {
	if len(x.Dims) != 4 {
		return w, shapes("scrimp computes images of four dimensions", x)
	}
	w = window{kernel: kernel, stride: [2]int{1, 1}, dilation: [2]int{1, 1}}
	for name, to := range map[string]*[2]int{"strides": &w.stride, "dilations": &w.dilation, "kernel_shape": &w.kernel} {
		v, has := c.node.Ints[name]
		if !has {
			continue
		}
		if len(v) != 2 || slices.Min(v) < 1 || slices.Max(v) > maxSide {
			return w, fmt.Errorf("%s=%v are not two numbers from 1 to %d", name, v, maxSide)
		}
		*to = [2]int{int(v[0]), int(v[1])}
	}
	if err := w.pad(c.node.Ints["pads"]); err != nil {
		return w, err
	}
	if kernel[0] > 0 && w.kernel != kernel {
		return w, fmt.Errorf("kernel_shape=%v, and the weight has %v", w.kernel, kernel)
	}
	for d := range 2 {
		room := x.Dims[2+d] + w.before[d] + w.after[d] - w.dilation[d]*(w.kernel[d]-1) - 1
		if w.kernel[d] < 1 || room < 0 {
			return w, fmt.Errorf("a kernel of %v does not fit %v", w.kernel, x.Dims)
		}
		w.out[d] = room/w.stride[d] + 1
	}
	return w, nil
}

const maxSide = 1 << 16

// each calls f with the places of the image below the kernel at an output, and with the place in the kernel.
func (w *window) each(x Value, row, col int, f func(at, kernel int)) {
	for i := range w.kernel[0] {
		r := row*w.stride[0] + i*w.dilation[0] - w.before[0]
		if r < 0 || r >= x.Dims[2] {
			continue
		}
		for j := range w.kernel[1] {
			if s := col*w.stride[1] + j*w.dilation[1] - w.before[1]; s >= 0 && s < x.Dims[3] {
				f(r*x.Dims[3]+s, i*w.kernel[1]+j)
			}
		}
	}
}

func conv(c *call) (Value, error) {
	x, k := c.in[0], c.in[1]
	groups := c.integer("group", 1)
	if len(x.Dims) != 4 || len(k.Dims) != 4 || groups < 1 || x.Dims[1] != k.Dims[1]*groups || k.Dims[0]%groups != 0 {
		return Value{}, shapes(fmt.Sprintf("the convolution of %d groups does not fit", groups), x, k)
	}
	w, err := windowOf(c, x, [2]int{k.Dims[2], k.Dims[3]})
	if err != nil {
		return Value{}, err
	}
	bias, has := c.optional(2)
	if has && len(bias.V) != k.Dims[0] {
		return Value{}, shapes("the bias does not fit", k, bias)
	}
	outs := k.Dims[0]
	out, err := empty(x.Dims[0], outs, w.out[0], w.out[1])
	if err == nil {
		err = affordable(len(out.V), k.Dims[1]*k.Dims[2]*k.Dims[3])
	}
	if err != nil {
		return out, err
	}
	image, kernel, ins := x.Dims[2]*x.Dims[3], w.kernel[0]*w.kernel[1], k.Dims[1]
	for i := range out.V {
		col, row := i%w.out[1], i/w.out[1]%w.out[0]
		o := i / (w.out[0] * w.out[1]) % outs
		first := i/(w.out[0]*w.out[1]*outs)*x.Dims[1] + o/(outs/groups)*ins
		sum := 0.0
		if has {
			sum = float64(bias.V[o])
		}
		w.each(x, row, col, func(at, place int) {
			for ch := range ins {
				sum += float64(x.V[(first+ch)*image+at]) * float64(k.V[(o*ins+ch)*kernel+place])
			}
		})
		out.V[i] = float32(sum)
	}
	return out, nil
}

// pool computes a value of each window of each channel.
func pool(c *call, f func(w *window, list []float32) float64) (Value, error) {
	x := c.in[0]
	w, err := windowOf(c, x, [2]int{})
	if err != nil {
		return Value{}, err
	}
	out, err := empty(x.Dims[0], x.Dims[1], w.out[0], w.out[1])
	if err == nil {
		err = affordable(len(out.V), w.kernel[0]*w.kernel[1])
	}
	if err != nil {
		return out, err
	}
	image, list := x.Dims[2]*x.Dims[3], []float32(nil)
	for i := range out.V {
		channel := x.V[i/(w.out[0]*w.out[1])*image:]
		list = list[:0]
		w.each(x, i/w.out[1]%w.out[0], i%w.out[1], func(at, _ int) { list = append(list, channel[at]) })
		out.V[i] = float32(f(&w, list))
	}
	return out, nil
}

func maxPool(c *call) (Value, error) {
	return pool(c, func(_ *window, list []float32) float64 {
		best := math.Inf(-1)
		for _, v := range list {
			best = max(best, float64(v))
		}
		return best
	})
}

func averagePool(c *call) (Value, error) {
	pads := c.integer("count_include_pad", 0) != 0
	return pool(c, func(w *window, list []float32) float64 {
		sum, n := 0.0, len(list)
		for _, v := range list {
			sum += float64(v)
		}
		if pads {
			n = w.kernel[0] * w.kernel[1]
		}
		return sum / float64(n)
	})
}

func globalAveragePool(c *call) (Value, error) {
	x := c.in[0]
	if len(x.Dims) != 4 {
		return Value{}, shapes("scrimp computes images of four dimensions", x)
	}
	out, err := empty(x.Dims[0], x.Dims[1], 1, 1)
	size := x.Dims[2] * x.Dims[3]
	for i := range out.V {
		sum := 0.0
		for _, v := range x.V[i*size : (i+1)*size] {
			sum += float64(v)
		}
		out.V[i] = float32(sum / float64(size))
	}
	return out, err
}

func batchNormalization(c *call) (Value, error) {
	x := c.in[0]
	if len(x.Dims) < 2 || c.integer("training_mode", 0) != 0 {
		return Value{}, shapes("the norm needs a dimension of channels and no training mode", x)
	}
	for _, v := range c.in[1:5] {
		if len(v.V) != x.Dims[1] {
			return Value{}, shapes("the norm does not fit", x, v)
		}
	}
	size := len(x.V) / x.Dims[0] / x.Dims[1]
	out, epsilon := Value{x.Dims, make([]float32, len(x.V))}, float64(c.number("epsilon", 1e-5))
	for i, v := range x.V {
		k := i / size % x.Dims[1]
		scale := float64(c.in[1].V[k]) / math.Sqrt(float64(c.in[4].V[k])+epsilon)
		out.V[i] = float32((float64(v)-float64(c.in[3].V[k]))*scale + float64(c.in[2].V[k]))
	}
	return out, nil
}
