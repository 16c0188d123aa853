package horizon

// Public is the common shape of spot markets, fitted to the eight public traces of
// 2022. Zones with more changes weigh less: by the square root. It holds no zone's
// own figures; docs/design/deadline-policy.md says what it costs to leave the tested
// zone out of the fit.
var Public = Prior{
	Up: Shape{
		Log:  [Knots]float64{0.693, 0.387, -0.064, -0.319, -0.368, -0.700, -0.985, -1.334, -1.685, -1.890},
		Same: -0.615, Other: -0.264, Share: -1.681, Middle: -0.44,
	},
	Gap: Shape{
		Log:  [Knots]float64{1.305, 0.537, 0.066, 0.091, -0.408, -1.124, -1.157, -1.412, -2.043, -3.225},
		Same: -0.776, Other: -0.168, Share: 0.830, Middle: -0.79,
	},
}
