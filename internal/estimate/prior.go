package estimate

// standard is the likeness that the binary uses. Its shares (sd, in ln: 0.1 is
// about 10 %) and distances were tuned by `go test ./internal/estimate -run
// TestTune -tune` on the error of groups and sources left out.
func standard() *kernel {
	r := func(pairs ...float64) (out [nNums]float64) {
		for i := 0; i+1 < len(pairs); i += 2 {
			out[int(pairs[i])] = pairs[i+1]
		}
		return out
	}
	return &kernel{noise: 0.04, terms: []term{
		{label: "all", sd: 0.5},
		{label: "family", names: bits(cFamily), sd: 0.6},
		{label: "family class", names: bits(cFamily, cClass), sd: 0.3},
		{label: "family arch class", names: bits(cFamily, cArch, cClass), sd: 0.2},
		{label: "family chip", names: bits(cFamily, cChip), sd: 0.2},
		{label: "arch class", names: bits(cArch, cClass), sd: 0.2},
		{label: "chip class", names: bits(cChip, cClass), sd: 0.2},
		{label: "chip", names: bits(cChip), sd: 0.1},
		{label: "task", names: bits(cTask, cFamily), sd: 0.2},
		{label: "stack", names: bits(cStack), sd: 0.2},
		{label: "stack family", names: bits(cStack, cFamily), sd: 0.2},
		{label: "source", names: bits(cSource), sd: 0.1},
		{label: "source chip", names: bits(cSource, cChip), sd: 0.1},
		{label: "line", names: bits(cLine, cFamily), sd: 0.2},
		{label: "model", names: bits(cModel), sd: 0.6},
		{label: "model class", names: bits(cModel, cClass), sd: 0.2},
		{label: "model arch", names: bits(cModel, cArch), sd: 0.1},
		{label: "model chip class", names: bits(cModel, cChip, cClass), sd: 0.2},
		{label: "model source", names: bits(cModel, cSource), sd: 0.1},
		{label: "model source chip", names: bits(cModel, cSource, cChip, cTask), sd: 0.1},
		{label: "run", names: bits(cModel, cSource, cChip, cTask, cPrecision), sd: 0.1},
		{label: "run cut", names: bits(cModel, cSource, cChip, cTask, cPrecision, cCut), sd: 0.05},
		{label: "precision", names: bits(cStack, cPrecision), sd: 0.1},
		{label: "family size", names: bits(cFamily), sd: 0.3, reach: r(xSize, 1.5)},
		{label: "family seq", names: bits(cFamily), sd: 0.3, reach: r(xSeq, 1.5)},
		{label: "family micro", names: bits(cFamily), sd: 0.3, reach: r(xMicro, 2)},
		{label: "family n", names: bits(cFamily), sd: 0.1, reach: r(xN, 2)},
		{label: "stack shape", names: bits(cStack, cFamily), sd: 0.2, reach: r(xSize, 2, xSeq, 1.5, xMicro, 1.5)},
		{label: "model micro", names: bits(cModel), sd: 0.2, reach: r(xMicro, 1, xSeq, 1)},
		{label: "model n", names: bits(cModel, cStack), sd: 0.1, reach: r(xN, 1.5)},
		{label: "chip n", names: bits(cChip, cFamily), sd: 0.1, reach: r(xN, 2)},
		{label: "chip n all", names: bits(cChip), sd: 0.1, reach: r(xN, 1)},
		{label: "cut", names: bits(cFamily), sd: 0.1, reach: r(xCut, 1.5)},
		{label: "all size", sd: 0.2, reach: r(xSize, 1.5)},
		{label: "all class size", names: bits(cClass), sd: 0.2, reach: r(xSize, 1.5)},
		{label: "all micro", sd: 0.1, reach: r(xMicro, 2)},
		{label: "where", names: bits(cWhere, cFamily), sd: 0.05},
		{label: "stack where", names: bits(cWhere, cStack), sd: 0.05},
		{label: "model ops", names: bits(cModel), sd: 0.2, reach: r(xOps, 1.5)},
		{label: "family ops", names: bits(cFamily), sd: 0.2, reach: r(xOps, 1.5)},
		{label: "chip ops", names: bits(cModel, cChip), sd: 0.1, reach: r(xOps, 1.5)},
		{label: "stack micro", names: bits(cStack), sd: 0.1, reach: r(xMicro, 1.5)},
		{label: "chip micro", names: bits(cChip, cFamily), sd: 0.1, reach: r(xMicro, 1.5)},
		{label: "class n", names: bits(cClass, cFamily), sd: 0.05, reach: r(xN, 2)},
		{label: "ops peak", names: bits(cFamily), sd: 0.1, reach: r(xOps, 2, xPeak, 1)},
		{label: "comm", sd: 0.1, slope: 1 + xComm},
		{label: "family comm", names: bits(cFamily), sd: 0.1, reach: r(xComm, 0.3)},
		{label: "stack comm", names: bits(cStack, cFamily), sd: 0.1, slope: 1 + xComm},
		{label: "arch comm", names: bits(cArch), sd: 0.1, slope: 1 + xComm},
		{label: "chip comm", names: bits(cChip, cStack), sd: 0.1, slope: 1 + xComm},
		{label: "peak all", sd: 0.05, slope: 1 + xPeak},
		{label: "band all", sd: 0.05, slope: 1 + xBand},
		{label: "class peak", names: bits(cFamily, cClass), sd: 0.05, slope: 1 + xPeak},
		{label: "peak line", names: bits(cFamily), sd: 0.05, slope: 1 + xPeak},
		{label: "band line", names: bits(cFamily), sd: 0.05, slope: 1 + xBand},
		{label: "model peak", names: bits(cModel), sd: 0.1, slope: 1 + xPeak},
		{label: "model band", names: bits(cModel), sd: 0.1, slope: 1 + xBand},
		{label: "size line", names: bits(cFamily), sd: 0.1, slope: 1 + xSize},
		{label: "ops line", names: bits(cFamily), sd: 0.1, slope: 1 + xOps},
	}}
}

// memoryKernel is the likeness of runs in what their memory differs by from arithmetic.
func memoryKernel() *kernel {
	var near [nNums]float64
	near[xMicro] = 1.5
	return &kernel{noise: 0.03, terms: []term{
		{label: "all", sd: 0.02},
		{label: "task", names: bits(cTask), sd: 0.04},
		{label: "stack", names: bits(cStack), sd: 0.1},
		{label: "stack task", names: bits(cStack, cTask), sd: 0.1},
		{label: "source task", names: bits(cSource, cTask), sd: 0.15},
		{label: "source task precision", names: bits(cSource, cTask, cPrecision), sd: 0.05},
		{label: "line", names: bits(cLine), sd: 0.02},
		{label: "model", names: bits(cModel), sd: 0.04},
		{label: "model stack", names: bits(cModel, cStack), sd: 0.08},
		{label: "source batch", names: bits(cSource, cTask), sd: 0.1, reach: near},
		{label: "run", names: bits(cModel, cSource, cTask, cPrecision, cWhere), sd: 0.05},
		{label: "cut", names: bits(cSource, cTask, cWhere), sd: 0.05},
	}}
}
