package onnxrun

import (
	"math"

	"scrimp/internal/work/onnx"
)

// convolve is Conv over images, with kernel, strides and pads, without dilation and groups. It follows the definition
// of the sum, one output at a time.
func convolve(e env, n onnx.Node) {
	x, w := e[n.In[0]], e[n.In[1]]
	stride, pad := pairOf(n.Ints["strides"], 1), pairOf(n.Ints["pads"], 0)
	c, h, width := x.Dims[1], x.Dims[2], x.Dims[3]
	kh, kw := w.Dims[2], w.Dims[3]
	oh, ow := (h+2*pad[0]-kh)/stride[0]+1, (width+2*pad[1]-kw)/stride[1]+1
	out := Value{Dims: []int{x.Dims[0], w.Dims[0], oh, ow}}
	for b := range x.Dims[0] {
		for o := range w.Dims[0] {
			for p := range oh * ow {
				sum := 0.0
				if len(n.In) > 2 {
					sum = e[n.In[2]].V[o]
				}
				for k := range c * kh * kw {
					i, r, s := k/(kh*kw), k/kw%kh, k%kw
					row, col := p/ow*stride[0]+r-pad[0], p%ow*stride[1]+s-pad[1]
					if row >= 0 && row < h && col >= 0 && col < width {
						sum += x.V[((b*c+i)*h+row)*width+col] * w.V[((o*c+i)*kh+r)*kw+s]
					}
				}
				out.V = append(out.V, sum)
			}
		}
	}
	e[n.Out[0]] = out
}

// pairOf returns the first two numbers of a list, or a pair of the same.
func pairOf(list []int64, other int) [2]int {
	if len(list) < 2 {
		return [2]int{other, other}
	}
	return [2]int{int(list[0]), int(list[1])}
}

// maxPool is MaxPool with a kernel and strides, without pads.
func maxPool(x Value, n onnx.Node) Value {
	k, stride := pairOf(n.Ints["kernel_shape"], 1), pairOf(n.Ints["strides"], 1)
	h, w := x.Dims[2], x.Dims[3]
	oh, ow := (h-k[0])/stride[0]+1, (w-k[1])/stride[1]+1
	out := Value{Dims: []int{x.Dims[0], x.Dims[1], oh, ow}}
	for image := range x.Dims[0] * x.Dims[1] {
		for p := range oh * ow {
			best := math.Inf(-1)
			for q := range k[0] * k[1] {
				row, col := p/ow*stride[0]+q/k[1], p%ow*stride[1]+q%k[1]
				best = max(best, x.V[(image*h+row)*w+col])
			}
			out.V = append(out.V, best)
		}
	}
	return out
}

// means is GlobalAveragePool.
func means(x Value) Value {
	size := x.Dims[2] * x.Dims[3]
	out := Value{Dims: []int{x.Dims[0], x.Dims[1], 1, 1}}
	for i := range x.Dims[0] * x.Dims[1] {
		sum := 0.0
		for _, v := range x.V[i*size : (i+1)*size] {
			sum += v
		}
		out.V = append(out.V, sum/float64(size))
	}
	return out
}

// normalize is BatchNormalization of a trained model.
func normalize(e env, n onnx.Node) {
	x := e[n.In[0]]
	scale, shift, mean, variance := e[n.In[1]].V, e[n.In[2]].V, e[n.In[3]].V, e[n.In[4]].V
	size := len(x.V) / x.Dims[0] / x.Dims[1]
	out := Value{x.Dims, make([]float64, len(x.V))}
	for i, v := range x.V {
		c := i / size % x.Dims[1]
		out.V[i] = (v-mean[c])/math.Sqrt(variance[c]+1e-5)*scale[c] + shift[c]
	}
	e[n.Out[0]] = out
}

// quantizeBy is QuantizeLinear to uint8 with one scale.
func quantizeBy(e env, n onnx.Node) {
	scale, zero := e[n.In[1]].V[0], 0.0
	if len(n.In) > 2 {
		zero = e[n.In[2]].V[0]
	}
	e[n.Out[0]] = each(e[n.In[0]], func(v float64) float64 {
		return max(0, min(255, math.RoundToEven(v/scale)+zero))
	})
}

// dequantize is DequantizeLinear with one scale, or with one for each place along an axis.
func dequantize(e env, n onnx.Node) {
	x, scale := e[n.In[0]], e[n.In[1]].V
	zero, size := 0.0, 1
	if len(n.In) > 2 {
		zero = e[n.In[2]].V[0]
	}
	if len(scale) > 1 {
		for _, d := range x.Dims[n.Ints["axis"][0]+1:] {
			size *= d
		}
	}
	out := Value{x.Dims, make([]float64, len(x.V))}
	for i, v := range x.V {
		out.V[i] = (v - zero) * scale[i/size%len(scale)]
	}
	e[n.Out[0]] = out
}
