package draw

import "unicode"

// Width returns the number of terminal columns that s takes: combining marks take none, East Asian characters and most
// emoji two.
func Width(s string) (n int) {
	for _, r := range s {
		n += widthOf(r)
	}
	return n
}

func widthOf(r rune) int {
	switch {
	case r < 0x300: // the most common case
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// wide holds the characters that Unicode's annex 11 calls wide or fullwidth, as blocks.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1100, 0x115f, 1}, {0x231a, 0x231b, 1}, {0x23e9, 0x23ec, 1}, {0x2614, 0x2615, 1}, {0x2648, 0x2653, 1},
		{0x26a1, 0x26a1, 1}, {0x2705, 0x2705, 1}, {0x2728, 0x2728, 1}, {0x274c, 0x274c, 1}, {0x2795, 0x2797, 1},
		{0x2b50, 0x2b50, 1}, {0x2e80, 0x303e, 1}, {0x3041, 0xa4cf, 1}, {0xa960, 0xa97f, 1}, {0xac00, 0xd7a3, 1},
		{0xf900, 0xfaff, 1}, {0xfe30, 0xfe6f, 1}, {0xff00, 0xff60, 1}, {0xffe0, 0xffe6, 1},
	},
	R32: []unicode.Range32{
		{0x16fe0, 0x18aff, 1}, {0x1b000, 0x1b2ff, 1}, {0x1f300, 0x1f64f, 1}, {0x1f680, 0x1f6ff, 1}, {0x1f900, 0x1faff, 1},
		{0x20000, 0x3fffd, 1},
	},
}
