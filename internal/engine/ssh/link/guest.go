package link

import (
	"strings"
	"unicode"

	"scrimp/internal/engine/hostd"
)

// Bounds of a guest's answers.
const (
	maxText  = 300  // bytes of a text
	maxParts = 1024 // accelerators, and a 64th of the processors
)

// A Guest is the way to a machine that connects to the server itself. Guest makes its answers safe, because the server
// did not copy the program that sends them.
type Guest interface {
	Way
	Await() // waits a moment for a machine that had joined the previous server
}

// PlainText returns s in printable characters and bounded length.
func PlainText(s string) string {
	s = s[:min(len(s), maxText)]
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s), "")
}

// tidy makes the answer of a machine that joined safe to print and to calculate with.
func tidy(a *hostd.Answer) {
	a.Problem = PlainText(a.Problem)
	f := a.Facts
	if f == nil {
		return
	}
	for _, s := range []*string{&f.OS, &f.Arch, &f.Accelerator, &f.Driver, &f.NoDriver, &f.Python, &f.Apart, &f.Server,
		&f.Dir, &f.By} {
		*s = PlainText(*s)
	}
	f.CPUs, f.Accelerators = min(max(0, f.CPUs), 64*maxParts), min(max(0, f.Accelerators), maxParts)
	f.Memory, f.GPUMemory, f.Free = max(0, f.Memory), max(0, f.GPUMemory), max(0, f.Free)
}
