package estimate

import "scrimp/internal/estimate/likeness"

// centre is where a linear term is neutral.
var centre = [likeness.Nums]float64{xN: 2, xMicro: 6, xSeq: 7, xOps: 24, xPeak: 5.7, xBand: 7.3, xSize: 21}

// Runs of one stack are alike in source, task, model and accelerator.
var (
	stackNames  = []int{cSource, cTask, cModel, cChip}
	sourceNames = []int{cSource}
)

// standard is the likeness that the binary uses. Its shares (sd, in ln: 0.1 is
// about 10 %) and distances were tuned by `go test ./internal/estimate -tags tune -run
// TestTune -tune` on the error of groups and sources left out.
func standard() *likeness.Kernel {
	r := func(pairs ...float64) (out [likeness.Nums]float64) {
		for i := 0; i+1 < len(pairs); i += 2 {
			out[int(pairs[i])] = pairs[i+1]
		}
		return out
	}
	return &likeness.Kernel{Centre: centre, Stack: stackNames, Source: sourceNames, Family: cFamily, Width: 0.5, Noise: 0.052, Terms: []likeness.Term{
		{Label: "all", SD: 0.13},
		{Label: "family", Names: likeness.Same(cFamily), SD: 0.25},
		{Label: "family class", Names: likeness.Same(cFamily, cClass), SD: 0.034},
		{Label: "family arch class", Names: likeness.Same(cFamily, cArch, cClass), SD: 0.037},
		{Label: "family chip", Names: likeness.Same(cFamily, cChip), SD: 0.2},
		{Label: "arch class", Names: likeness.Same(cArch, cClass), SD: 0.17},
		{Label: "chip class", Names: likeness.Same(cChip, cClass), SD: 0.062},
		{Label: "chip", Names: likeness.Same(cChip), SD: 0.25},
		{Label: "task", Names: likeness.Same(cTask, cFamily), SD: 0.058},
		{Label: "stack", Names: likeness.Same(cStack), SD: 0.5},
		{Label: "stack family", Names: likeness.Same(cStack, cFamily), SD: 0.054},
		{Label: "source", Names: likeness.Same(cSource), SD: 0.31},
		{Label: "source chip", Names: likeness.Same(cSource, cChip), SD: 0.056},
		{Label: "line", Names: likeness.Same(cLine, cFamily), SD: 0.073},
		{Label: "model", Names: likeness.Same(cModel), SD: 0.061},
		{Label: "model class", Names: likeness.Same(cModel, cClass), SD: 0.068},
		{Label: "model arch", Names: likeness.Same(cModel, cArch), SD: 0.15},
		{Label: "model chip class", Names: likeness.Same(cModel, cChip, cClass), SD: 0.033},
		{Label: "model source", Names: likeness.Same(cModel, cSource), SD: 0.036},
		{Label: "model source chip", Names: likeness.Same(cModel, cSource, cChip, cTask), SD: 0.041},
		{Label: "run", Names: likeness.Same(cModel, cSource, cChip, cTask, cPrecision), SD: 0.055},
		{Label: "run cut", Names: likeness.Same(cModel, cSource, cChip, cTask, cPrecision, cCut), SD: 0.11},
		{Label: "precision", Names: likeness.Same(cStack, cPrecision), SD: 0.088},
		{Label: "family size", Names: likeness.Same(cFamily), SD: 0.096, Reach: r(xSize, 1.4)},
		{Label: "family seq", Names: likeness.Same(cFamily), SD: 0.34, Reach: r(xSeq, 3.8)},
		{Label: "family micro", Names: likeness.Same(cFamily), SD: 0.053, Reach: r(xMicro, 2.1)},
		{Label: "family n", Names: likeness.Same(cFamily), SD: 0.027, Reach: r(xN, 2.5)},
		{Label: "stack shape", Names: likeness.Same(cStack, cFamily), SD: 0.1, Reach: r(xSize, 1.8, xSeq, 0.91, xMicro, 1.3)},
		{Label: "model micro", Names: likeness.Same(cModel), SD: 0.19, Reach: r(xMicro, 1.4, xSeq, 0.57)},
		{Label: "model n", Names: likeness.Same(cModel, cStack), SD: 0.13, Reach: r(xN, 0.44)},
		{Label: "chip n", Names: likeness.Same(cChip, cFamily), SD: 0.14, Reach: r(xN, 4.4)},
		{Label: "cut", Names: likeness.Same(cFamily), SD: 0.18, Reach: r(xCut, 0.56)},
		{Label: "all size", SD: 0.29, Reach: r(xSize, 0.55)},
		{Label: "all class size", Names: likeness.Same(cClass), SD: 0.19, Reach: r(xSize, 4.9)},
		{Label: "all micro", SD: 0.2, Reach: r(xMicro, 1.2)},
		{Label: "stack where", Names: likeness.Same(cWhere, cStack), SD: 0.037},
		{Label: "model ops", Names: likeness.Same(cModel), SD: 0.077, Reach: r(xOps, 1.3)},
		{Label: "family ops", Names: likeness.Same(cFamily), SD: 0.074, Reach: r(xOps, 1.4)},
		{Label: "chip ops", Names: likeness.Same(cModel, cChip), SD: 0.44, Reach: r(xOps, 0.2)},
		{Label: "stack micro", Names: likeness.Same(cStack), SD: 0.23, Reach: r(xMicro, 1.8)},
		{Label: "chip micro", Names: likeness.Same(cChip, cFamily), SD: 0.38, Reach: r(xMicro, 1.7)},
		{Label: "class n", Names: likeness.Same(cClass, cFamily), SD: 0.046, Reach: r(xN, 1.4)},
		{Label: "ops peak", Names: likeness.Same(cFamily), SD: 0.22, Reach: r(xOps, 1.4, xPeak, 0.68)},
		{Label: "comm", SD: 0.13, Slope: 1 + xComm},
		{Label: "family comm", Names: likeness.Same(cFamily), SD: 0.078, Reach: r(xComm, 0.21)},
		{Label: "stack comm", Names: likeness.Same(cStack, cFamily), SD: 0.14, Slope: 1 + xComm},
		{Label: "arch comm", Names: likeness.Same(cArch), SD: 0.091, Slope: 1 + xComm},
		{Label: "chip comm", Names: likeness.Same(cChip, cStack), SD: 2, Slope: 1 + xComm},
		{Label: "peak all", SD: 0.25, Slope: 1 + xPeak},
		{Label: "band all", SD: 0.049, Slope: 1 + xBand},
		{Label: "peak line", Names: likeness.Same(cFamily), SD: 0.066, Slope: 1 + xPeak},
		{Label: "band line", Names: likeness.Same(cFamily), SD: 0.032, Slope: 1 + xBand},
		{Label: "model peak", Names: likeness.Same(cModel), SD: 0.17, Slope: 1 + xPeak},
		{Label: "model band", Names: likeness.Same(cModel), SD: 0.064, Slope: 1 + xBand},
		{Label: "size line", Names: likeness.Same(cFamily), SD: 0.031, Slope: 1 + xSize},
	}}
}

// memoryKernel is the likeness of runs in what their memory differs by from arithmetic.
func memoryKernel() *likeness.Kernel {
	var near [likeness.Nums]float64
	near[xMicro] = 1.5
	return &likeness.Kernel{Centre: centre, Stack: stackNames, Source: sourceNames, Family: cFamily, Width: 1, Noise: 0.03, Terms: []likeness.Term{
		{Label: "all", SD: 0.02},
		{Label: "task", Names: likeness.Same(cTask), SD: 0.04},
		{Label: "stack", Names: likeness.Same(cStack), SD: 0.1},
		{Label: "stack task", Names: likeness.Same(cStack, cTask), SD: 0.1},
		{Label: "source task", Names: likeness.Same(cSource, cTask), SD: 0.15},
		{Label: "source task precision", Names: likeness.Same(cSource, cTask, cPrecision), SD: 0.05},
		{Label: "line", Names: likeness.Same(cLine), SD: 0.02},
		{Label: "model", Names: likeness.Same(cModel), SD: 0.04},
		{Label: "model stack", Names: likeness.Same(cModel, cStack), SD: 0.08},
		{Label: "source batch", Names: likeness.Same(cSource, cTask), SD: 0.1, Reach: near},
		{Label: "run", Names: likeness.Same(cModel, cSource, cTask, cPrecision, cWhere), SD: 0.05},
		{Label: "cut", Names: likeness.Same(cSource, cTask, cWhere), SD: 0.05},
	}}
}
