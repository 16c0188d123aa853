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
	return &kernel{noise: 0.052, terms: []term{
		{label: "all", sd: 0.13},
		{label: "family", names: bits(cFamily), sd: 0.25},
		{label: "family class", names: bits(cFamily, cClass), sd: 0.034},
		{label: "family arch class", names: bits(cFamily, cArch, cClass), sd: 0.037},
		{label: "family chip", names: bits(cFamily, cChip), sd: 0.2},
		{label: "arch class", names: bits(cArch, cClass), sd: 0.17},
		{label: "chip class", names: bits(cChip, cClass), sd: 0.062},
		{label: "chip", names: bits(cChip), sd: 0.25},
		{label: "task", names: bits(cTask, cFamily), sd: 0.058},
		{label: "stack", names: bits(cStack), sd: 0.5},
		{label: "stack family", names: bits(cStack, cFamily), sd: 0.054},
		{label: "source", names: bits(cSource), sd: 0.31},
		{label: "source chip", names: bits(cSource, cChip), sd: 0.056},
		{label: "line", names: bits(cLine, cFamily), sd: 0.073},
		{label: "model", names: bits(cModel), sd: 0.061},
		{label: "model class", names: bits(cModel, cClass), sd: 0.068},
		{label: "model arch", names: bits(cModel, cArch), sd: 0.15},
		{label: "model chip class", names: bits(cModel, cChip, cClass), sd: 0.033},
		{label: "model source", names: bits(cModel, cSource), sd: 0.036},
		{label: "model source chip", names: bits(cModel, cSource, cChip, cTask), sd: 0.041},
		{label: "run", names: bits(cModel, cSource, cChip, cTask, cPrecision), sd: 0.055},
		{label: "run cut", names: bits(cModel, cSource, cChip, cTask, cPrecision, cCut), sd: 0.11},
		{label: "precision", names: bits(cStack, cPrecision), sd: 0.088},
		{label: "family size", names: bits(cFamily), sd: 0.096, reach: r(xSize, 1.4)},
		{label: "family seq", names: bits(cFamily), sd: 0.34, reach: r(xSeq, 3.8)},
		{label: "family micro", names: bits(cFamily), sd: 0.053, reach: r(xMicro, 2.1)},
		{label: "family n", names: bits(cFamily), sd: 0.027, reach: r(xN, 2.5)},
		{label: "stack shape", names: bits(cStack, cFamily), sd: 0.1, reach: r(xSize, 1.8, xSeq, 0.91, xMicro, 1.3)},
		{label: "model micro", names: bits(cModel), sd: 0.19, reach: r(xMicro, 1.4, xSeq, 0.57)},
		{label: "model n", names: bits(cModel, cStack), sd: 0.13, reach: r(xN, 0.44)},
		{label: "chip n", names: bits(cChip, cFamily), sd: 0.14, reach: r(xN, 4.4)},
		{label: "cut", names: bits(cFamily), sd: 0.18, reach: r(xCut, 0.56)},
		{label: "all size", sd: 0.29, reach: r(xSize, 0.55)},
		{label: "all class size", names: bits(cClass), sd: 0.19, reach: r(xSize, 4.9)},
		{label: "all micro", sd: 0.2, reach: r(xMicro, 1.2)},
		{label: "stack where", names: bits(cWhere, cStack), sd: 0.037},
		{label: "model ops", names: bits(cModel), sd: 0.077, reach: r(xOps, 1.3)},
		{label: "family ops", names: bits(cFamily), sd: 0.074, reach: r(xOps, 1.4)},
		{label: "chip ops", names: bits(cModel, cChip), sd: 0.44, reach: r(xOps, 0.2)},
		{label: "stack micro", names: bits(cStack), sd: 0.23, reach: r(xMicro, 1.8)},
		{label: "chip micro", names: bits(cChip, cFamily), sd: 0.38, reach: r(xMicro, 1.7)},
		{label: "class n", names: bits(cClass, cFamily), sd: 0.046, reach: r(xN, 1.4)},
		{label: "ops peak", names: bits(cFamily), sd: 0.22, reach: r(xOps, 1.4, xPeak, 0.68)},
		{label: "comm", sd: 0.13, slope: 1 + xComm},
		{label: "family comm", names: bits(cFamily), sd: 0.078, reach: r(xComm, 0.21)},
		{label: "stack comm", names: bits(cStack, cFamily), sd: 0.14, slope: 1 + xComm},
		{label: "arch comm", names: bits(cArch), sd: 0.091, slope: 1 + xComm},
		{label: "chip comm", names: bits(cChip, cStack), sd: 2, slope: 1 + xComm},
		{label: "peak all", sd: 0.25, slope: 1 + xPeak},
		{label: "band all", sd: 0.049, slope: 1 + xBand},
		{label: "peak line", names: bits(cFamily), sd: 0.066, slope: 1 + xPeak},
		{label: "band line", names: bits(cFamily), sd: 0.032, slope: 1 + xBand},
		{label: "model peak", names: bits(cModel), sd: 0.17, slope: 1 + xPeak},
		{label: "model band", names: bits(cModel), sd: 0.064, slope: 1 + xBand},
		{label: "size line", names: bits(cFamily), sd: 0.031, slope: 1 + xSize},
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
