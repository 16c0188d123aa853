package horizon

// Public is the common shape of spot markets, fitted to the eight public traces of
// 2022. Zones with more changes weigh less: by the square root. It holds no zone's
// own figures; docs/design/deadline-policy.md says what it costs to leave the tested
// zone out of the fit.
var Public = Prior{
	Up: Shape{
		Log:  [Knots]float64{0.689, 0.377, -0.077, -0.334, -0.382, -0.715, -1.007, -1.357, -1.692, -1.902},
		Same: -0.549, Other: -0.342, Share: -1.703, Middle: -0.44,
	},
	Gap: Shape{
		Log:  [Knots]float64{1.308, 0.514, 0.036, 0.060, -0.440, -1.149, -1.176, -1.432, -2.054, -3.173},
		Same: -0.531, Other: -0.334, Share: 1.183, Middle: -0.79,
	},
}
