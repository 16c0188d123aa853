package onezone

// Public is the common shape of spot markets, fitted to the eight public traces of 2022. It contains no zone's own
// figures; docs/design/deadline-policy.md states the cost of leaving the tested zone out of the fit.
var Public = Prior{
	Up: Shape{
		Log:  [Knots]float64{0.723, 0.378, -0.058, -0.281, -0.381, -0.698, -0.994, -1.282, -1.601, -1.909},
		Same: -0.550, Other: -0.356, Share: -1.732, Middle: -0.44,
	},
	Gap: Shape{
		Log:  [Knots]float64{1.304, 0.478, 0.053, 0.045, -0.436, -1.129, -1.180, -1.422, -1.860, -2.995},
		Same: -0.563, Other: -0.311, Share: 1.000, Middle: -0.79,
	},
}
