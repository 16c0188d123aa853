package estimate

import "scrimp/internal/estimate/residual"

// centre is where a linear term is neutral.
var centre = [residual.Nums]float64{xN: 2, xMicro: 6, xSeq: 7, xOps: 24, xPeak: 5.7, xBand: 7.3, xSize: 21}

// Runs of one stack agree in source, task, model and accelerator.
var (
	stackNames  = []int{cSource, cTask, cModel, cChip}
	sourceNames = []int{cSource}
)

// standard returns the kernel of the binary. `go test ./internal/estimate -run TestSettle -settle -steps 100` fits its
// shares (sd, in ln: 0.1 is about 10 %) and distances on the error of groups and sources left out.
func standard() *residual.Kernel {
	r := func(pairs ...float64) (out [residual.Nums]float64) {
		for i := 0; i+1 < len(pairs); i += 2 {
			out[int(pairs[i])] = pairs[i+1]
		}
		return out
	}
	return &residual.Kernel{Centre: centre, Stack: stackNames, Source: sourceNames, Family: cFamily, Width: 0.5,
		Noise: 0.0248, Terms: []residual.Term{
			{Label: "all", SD: 0.11},
			{Label: "family", Names: residual.Same(cFamily), SD: 0.086},
			{Label: "family class", Names: residual.Same(cFamily, cClass), SD: 0.051},
			{Label: "family arch class", Names: residual.Same(cFamily, cArch, cClass), SD: 0.037},
			{Label: "family chip", Names: residual.Same(cFamily, cChip), SD: 0.05},
			{Label: "arch class", Names: residual.Same(cArch, cClass), SD: 0.065},
			{Label: "chip class", Names: residual.Same(cChip, cClass), SD: 0.047},
			{Label: "chip", Names: residual.Same(cChip), SD: 0.089},
			{Label: "task", Names: residual.Same(cTask, cFamily), SD: 0.048},
			{Label: "stack", Names: residual.Same(cStack), SD: 0.088},
			{Label: "stack family", Names: residual.Same(cStack, cFamily), SD: 0.072},
			{Label: "source", Names: residual.Same(cSource), SD: 0.056},
			{Label: "source chip", Names: residual.Same(cSource, cChip), SD: 0.045},
			{Label: "line", Names: residual.Same(cLine, cFamily), SD: 0.053},
			{Label: "model", Names: residual.Same(cModel), SD: 0.039},
			{Label: "model class", Names: residual.Same(cModel, cClass), SD: 0.036},
			{Label: "model arch", Names: residual.Same(cModel, cArch), SD: 0.041},
			{Label: "model chip class", Names: residual.Same(cModel, cChip, cClass), SD: 0.024},
			{Label: "model source", Names: residual.Same(cModel, cSource), SD: 0.033},
			{Label: "model source chip", Names: residual.Same(cModel, cSource, cChip, cTask), SD: 0.025},
			{Label: "run", Names: residual.Same(cModel, cSource, cChip, cTask, cPrecision), SD: 0.024},
			{Label: "run cut", Names: residual.Same(cModel, cSource, cChip, cTask, cPrecision, cCut), SD: 0.029},
			{Label: "precision", Names: residual.Same(cStack, cPrecision), SD: 0.055},
			{Label: "family size", Names: residual.Same(cFamily), SD: 0.075, Reach: r(xSize, 2.1)},
			{Label: "family seq", Names: residual.Same(cFamily), SD: 0.065, Reach: r(xSeq, 1.7)},
			{Label: "family micro", Names: residual.Same(cFamily), SD: 0.13, Reach: r(xMicro, 2.7)},
			{Label: "family n", Names: residual.Same(cFamily), SD: 0.075, Reach: r(xN, 2.2)},
			{Label: "stack size", Names: residual.Same(cStack, cFamily), SD: 0.062, Reach: r(xSize, 2.1)},
			{Label: "stack seq", Names: residual.Same(cStack, cFamily), SD: 0.067, Reach: r(xSeq, 2.2)},
			{Label: "model micro", Names: residual.Same(cModel), SD: 0.038, Reach: r(xMicro, 2.1)},
			{Label: "model seq", Names: residual.Same(cModel), SD: 0.043, Reach: r(xSeq, 0.69)},
			{Label: "model n", Names: residual.Same(cModel, cStack), SD: 0.03, Reach: r(xN, 0.65)},
			{Label: "chip n", Names: residual.Same(cChip, cFamily), SD: 0.057, Reach: r(xN, 3.3)},
			{Label: "cut", Names: residual.Same(cFamily), SD: 0.084, Reach: r(xCut, 2.8)},
			{Label: "all size", SD: 0.082, Reach: r(xSize, 2.7)},
			{Label: "all class size", Names: residual.Same(cClass), SD: 0.072, Reach: r(xSize, 3.2)},
			{Label: "all micro", SD: 0.12, Reach: r(xMicro, 1.9)},
			{Label: "stack where", Names: residual.Same(cWhere, cStack), SD: 0.095},
			{Label: "model ops", Names: residual.Same(cModel), SD: 0.039, Reach: r(xOps, 1.6)},
			{Label: "family ops", Names: residual.Same(cFamily), SD: 0.07, Reach: r(xOps, 2.9)},
			{Label: "chip ops", Names: residual.Same(cModel, cChip), SD: 0.051, Reach: r(xOps, 0.45)},
			{Label: "stack micro", Names: residual.Same(cStack), SD: 0.06, Reach: r(xMicro, 1.9)},
			{Label: "chip micro", Names: residual.Same(cChip, cFamily), SD: 0.048, Reach: r(xMicro, 3.5)},
			{Label: "class n", Names: residual.Same(cClass, cFamily), SD: 0.052, Reach: r(xN, 2.2)},
			{Label: "family peak", Names: residual.Same(cFamily), SD: 0.087, Reach: r(xPeak, 1.9)},
			{Label: "comm", SD: 0.097, Slope: 1 + xComm},
			{Label: "family comm", Names: residual.Same(cFamily), SD: 0.084, Reach: r(xComm, 1.4)},
			{Label: "stack comm", Names: residual.Same(cStack, cFamily), SD: 0.095, Slope: 1 + xComm},
			{Label: "arch comm", Names: residual.Same(cArch), SD: 0.096, Slope: 1 + xComm},
			{Label: "chip comm", Names: residual.Same(cChip, cStack), SD: 0.28, Slope: 1 + xComm},
			{Label: "peak all", SD: 0.1, Slope: 1 + xPeak},
			{Label: "band all", SD: 0.12, Slope: 1 + xBand},
			{Label: "peak line", Names: residual.Same(cFamily), SD: 0.067, Slope: 1 + xPeak},
			{Label: "band line", Names: residual.Same(cFamily), SD: 0.08, Slope: 1 + xBand},
			{Label: "model peak", Names: residual.Same(cModel), SD: 0.044, Slope: 1 + xPeak},
			{Label: "model band", Names: residual.Same(cModel), SD: 0.05, Slope: 1 + xBand},
			{Label: "size line", Names: residual.Same(cFamily), SD: 0.061, Slope: 1 + xSize},
			{Label: "trees", SD: 0.56, Slope: 1 + xTree},
			{Label: "program", Names: residual.Same(cModel), SD: 0.53, Slope: 1 + xTree},
			{Label: "program chip", Names: residual.Same(cModel, cArch), SD: 0.66, Slope: 1 + xTree},
			{Label: "program size", Names: residual.Same(cModel), SD: 0.55, Slope: 1 + xTree, Reach: r(xOps, 1.4)},
			{Label: "release", Names: residual.Same(cSource, cForm), SD: 0.042},
			{Label: "release family", Names: residual.Same(cSource, cForm, cFamily), SD: 0.05},
			{Label: "release arch", Names: residual.Same(cSource, cForm, cFamily, cArch), SD: 0.037},
		}}
}

// memoryKernel returns the kernel for the difference between measured and computed memory.
func memoryKernel() *residual.Kernel {
	var near [residual.Nums]float64
	near[xMicro] = 1.5
	return &residual.Kernel{Centre: centre, Stack: stackNames, Source: sourceNames, Family: cFamily, Width: 1,
		Noise: 0.03, Terms: []residual.Term{
			{Label: "all", SD: 0.02},
			{Label: "task", Names: residual.Same(cTask), SD: 0.04},
			{Label: "stack", Names: residual.Same(cStack), SD: 0.1},
			{Label: "stack task", Names: residual.Same(cStack, cTask), SD: 0.1},
			{Label: "source task", Names: residual.Same(cSource, cTask), SD: 0.15},
			{Label: "source task precision", Names: residual.Same(cSource, cTask, cPrecision), SD: 0.05},
			{Label: "line", Names: residual.Same(cLine), SD: 0.02},
			{Label: "model", Names: residual.Same(cModel), SD: 0.04},
			{Label: "model stack", Names: residual.Same(cModel, cStack), SD: 0.08},
			{Label: "source batch", Names: residual.Same(cSource, cTask), SD: 0.1, Reach: near},
			{Label: "run", Names: residual.Same(cModel, cSource, cTask, cPrecision, cWhere), SD: 0.05},
			{Label: "cut", Names: residual.Same(cSource, cTask, cWhere), SD: 0.05},
		}}
}
