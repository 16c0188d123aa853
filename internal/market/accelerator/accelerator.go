// Package accelerator holds the facts about kinds of accelerators, and matches their names.
package accelerator

import (
	_ "embed" // the facts are part of the program
	"fmt"
	"slices"
	"strconv"
	"strings"

	"scrimp/internal/lib/figure"
	"scrimp/internal/lib/size"
	"scrimp/internal/market/table"
)

//go:embed accelerators.csv
var acceleratorRows string

//go:embed usable.csv
var usableRows string

// Precision is a number format for matrix products.
type Precision string

// Formats with known rates.
const (
	FP32 Precision = "fp32"
	TF32 Precision = "tf32"
	FP16 Precision = "fp16"
	BF16 Precision = "bf16"
	FP8  Precision = "fp8"
	INT8 Precision = "int8"
	FP4  Precision = "fp4"
)

// Accelerator holds the facts about one kind. Rates are dense (vendors quote twice as much for sparse matrices), in
// 1e12 operations a second.
type Accelerator struct {
	Name   string // H100-SXM-80GB
	Vendor string
	Arch   string

	Memory     size.Bytes // nominal, in decimal gigabytes
	MemoryType string
	// UsableMemory is the memory that the driver reports, before a context and its libraries take their share; 0 if
	// unknown.
	UsableMemory size.Bytes
	Bandwidth    figure.Figure // of the memory, GB/s
	Link         figure.Figure // to its neighbours in a machine, one way, GB/s
	Power        figure.Figure // W
	Matmul       figure.Figure // best measured 16-bit matrix product, 1e12 a second
	rates        map[Precision]float64

	Confidence   string // H: a source was read; M: vendor's figures, partly from memory
	Source       string
	UsableSource string
	Notes        string

	words []string // of its name
}

// Dense returns the dense rate at p in 1e12 operations a second, and false if no source states it or the kind lacks the
// format.
func (a Accelerator) Dense(p Precision) (float64, bool) {
	v, ok := a.rates[p]
	return v, ok
}

// Half returns the dense rate in the kind's 16-bit format: float16, or bfloat16 for kinds without float16 (TPUs).
func (a Accelerator) Half() (float64, bool) {
	if v, ok := a.rates[FP16]; ok {
		return v, true
	}
	return a.Dense(BF16)
}

// Usable returns the memory to plan with: the driver's figure if a source states it, otherwise the nominal decimal
// gigabytes, which are less.
func (a Accelerator) Usable() size.Bytes {
	if a.UsableMemory > 0 {
		return a.UsableMemory
	}
	return a.Memory
}

var accelerators, acceleratorIndex = mustAccelerators()

func mustAccelerators() ([]Accelerator, map[string]int) {
	list, err := parseAccelerators(acceleratorRows, usableRows)
	if err != nil {
		panic("accelerator: " + err.Error()) // the rows are part of the program, and a test reads them
	}
	index := map[string]int{}
	for i, a := range list {
		index[strings.ToLower(a.Name)] = i
	}
	return list, index
}

func parseAccelerators(specs, usable string) ([]Accelerator, error) {
	rows, err := table.Read(specs)
	if err != nil {
		return nil, err
	}
	var list []Accelerator
	at := map[string]int{}
	for _, r := range rows {
		a, err := accelerator(r)
		if err != nil {
			return nil, err
		}
		if _, ok := at[a.Name]; ok || a.Name == "" || a.Source == "" {
			return nil, fmt.Errorf("accelerator %q stands twice, or without name or source", a.Name)
		}
		at[a.Name] = len(list)
		list = append(list, a)
	}
	rows, err = table.Read(usable)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		i, ok := at[r["accelerator"]]
		mib, err := strconv.ParseInt(r["usable_mib"], 10, 32)
		if !ok || err != nil || mib <= 0 || r["source"] == "" || r["date"] == "" {
			return nil, fmt.Errorf("usable memory of %q is malformed", r["accelerator"])
		}
		list[i].UsableMemory, list[i].UsableSource = size.Bytes(mib)*size.MiB, r["source"]+", "+r["date"]
	}
	return list, nil
}

// accelerator parses a row of the embedded table.
func accelerator(r map[string]string) (a Accelerator, err error) {
	a = Accelerator{Name: r["accelerator"], Vendor: r["vendor"], Arch: r["arch"], MemoryType: r["mem_type"],
		Confidence: r["confidence"], Source: r["sources"], Notes: r["notes"],
		words: words(r["accelerator"]), rates: map[Precision]float64{}}
	number := func(name string) figure.Figure {
		if r[name] == "" {
			return figure.Figure{}
		}
		v, bad := strconv.ParseFloat(r[name], 64)
		if bad != nil || !(v > 0) || v > 1e9 {
			err = fmt.Errorf("accelerator %s: %s is %q", a.Name, name, r[name])
		}
		return figure.Known(v)
	}
	rate := func(p Precision, f figure.Figure) {
		if f.OK {
			a.rates[p] = f.V
		}
	}
	if memory := number("mem_gb"); memory.OK {
		a.Memory = size.Bytes(memory.V * float64(size.GB))
	}
	a.Bandwidth, a.Link = number("mem_bw_gbps"), number("intra_node_bw_gbps_unidir")
	a.Power, a.Matmul = number("tdp_w"), number("measured_matmul_bf16_tflops")
	half := number("bf16_fp16_dense")
	rate(FP32, number("fp32_tflops"))
	rate(TF32, number("tf32_dense"))
	if a.Arch != "tpu" { // TPU matrix units take bfloat16 and no float16
		rate(FP16, half)
	}
	if a.Arch != "turing" && a.Arch != "volta" { // those have no bfloat16
		rate(BF16, half)
	}
	rate(FP8, number("fp8_dense"))
	rate(INT8, number("int8_dense_tops"))
	rate(FP4, number("fp4_dense"))
	return a, err
}

// Accelerators returns the known kinds in the order of the embedded table.
func Accelerators() []Accelerator { return accelerators }

// Find returns the facts about the kind with exactly that name, ignoring case.
func Find(name string) (Accelerator, bool) {
	i, ok := acceleratorIndex[strings.ToLower(name)]
	if !ok {
		return Accelerator{}, false
	}
	return accelerators[i], true
}

// MostMemory returns the memory of an accelerator by an offer's name for it, in bytes. For a name that covers several
// kinds, such as A100 or V100, it returns the largest memory among them. It returns false if the memory is unknown.
func MostMemory(name string) (most size.Bytes, known bool) {
	if a, ok := Find(name); ok {
		return a.Memory, a.Memory > 0
	}
	for i := range accelerators {
		if a := &accelerators[i]; Matches(name, a.Name) {
			most = max(most, a.Memory)
		}
	}
	return most, most > 0
}

// AnyKind stands for a GPU of any kind. Programs for GPUs do not run on TPUs or AWS accelerators.
const AnyKind = "any"

// Matches reports whether query selects the kind name: their first words are equal, and name has every other word of
// query. H100 matches every H100, A100-80GB the two with 80 GB; A10 does not match A10G, and L4 matches no part of an
// L4. The word any matches every whole GPU.
func Matches(query, name string) bool {
	if strings.EqualFold(query, AnyKind) {
		return isGPU(name)
	}
	if q, n := kindOf(query), kindOf(name); q != "" && n != "" && !sameKind(q, n) && !sameKind(n, q) {
		return false // a fast path for different kinds, without splitting the names
	}
	return matches(words(query), words(name))
}

// isGPU reports whether the accelerator is a GPU; an unknown kind counts as one.
func isGPU(name string) bool {
	w := words(name)
	return len(w) > 0 && !IsPart(name) && !InferenceOnly(name) && !strings.HasPrefix(w[0], "tpu") &&
		!strings.HasPrefix(w[0], "trainium")
}

// IsPart reports whether name is a part of an accelerator, such as l4-part: it has less memory and speed than a whole
// one, and nobody publishes how much.
func IsPart(name string) bool { return slices.Contains(words(name), "part") }

// kindOf returns the first word of a plain name in lower case, or "" if the name has a brand or a space.
func kindOf(s string) string {
	if strings.ContainsRune(s, ' ') || s == "" || s[0]|0x20 == 'n' || s[0]|0x20 == 't' || s[0]|0x20 == 'r' {
		return "" // NVIDIA-…, Tesla-…, RTX-…
	}
	if i := strings.IndexAny(s, "-_"); i >= 0 {
		s = s[:i]
	}
	return strings.ToLower(s)
}

func matches(q, n []string) bool {
	if len(q) == 0 || len(n) == 0 || !sameKind(q[0], n[0]) {
		return false
	}
	for _, w := range n {
		if w == "part" && q[len(q)-1] != "part" {
			return false
		}
	}
	for _, w := range q[1:] {
		found := false
		for _, have := range n[1:] {
			found = found || w == have || w == "sxm5" && have == "sxm" || w == "sxm4" && have == "sxm"
		}
		if !found {
			return false
		}
	}
	return true
}

// sameKind compares first words: Trainium matches Trainium1.
func sameKind(query, name string) bool {
	return query == name || (query == "trainium" || query == "inferentia" || query == "tpu") &&
		strings.HasPrefix(name, query)
}

func words(s string) []string {
	s = strings.ToLower(strings.TrimSpace(s))
	for _, brand := range []string{"nvidia-", "nvidia ", "tesla-", "tesla "} {
		s = strings.TrimPrefix(s, brand)
	}
	s = strings.ReplaceAll(strings.ReplaceAll(s, "rtx ", "rtx"), "rtx-", "rtx")
	return strings.FieldsFunc(s, func(r rune) bool { return r == '-' || r == ' ' || r == '_' })
}

// Resolve returns the full name of the kind that a source calls name on a machine: the only kind that matches, where
// the machine's name selects the form and memory selects the size. It returns name if none or several remain.
func Resolve(name, machine string, memory size.Bytes) string {
	if a, ok := Find(name); ok {
		return a.Name
	}
	var fit []Accelerator
	asked := words(name)
	for _, a := range accelerators {
		// A family name alone, such as Inferentia, has no generation: the memory selects it.
		named := len(asked) > 0 && asked[0] == a.words[0]
		if matches(asked, a.words) && (memory == 0 && named || near(memory, a.Memory)) {
			fit = append(fit, a)
		}
	}
	if len(fit) > 1 {
		fit = slices.DeleteFunc(fit, func(a Accelerator) bool { return !a.formOf(machine) })
	}
	if len(fit) == 1 {
		return fit[0].Name
	}
	return name
}

// formOf reports whether a machine's name contains the accelerator's form.
func (a Accelerator) formOf(machine string) bool {
	return slices.ContainsFunc(a.words[1:], func(w string) bool {
		return slices.Contains([]string{"sxm", "sxm2", "pcie", "nvl"}, w) &&
			strings.Contains(strings.ToLower(machine), w)
	})
}

// near distinguishes 80 GB, 80 GiB and 79.6 GiB from 40 GB.
func near(a, b size.Bytes) bool { return a > b*9/10 && a < b*11/10 }

// InferenceOnly reports whether accelerators with that name serve models but do not train, as AWS documents for
// Inferentia (docs.aws.amazon.com/dlami/latest/devguide/tutorial-inferentia.html, with Trainium for training;
// 2026-11-22).
func InferenceOnly(name string) bool {
	w := words(name)
	return len(w) > 0 && strings.HasPrefix(w[0], "inferentia")
}

// Share returns the dense throughput of kind relative to the fastest accelerator that matches asked. It returns false
// if asked stands for several kinds and that of kind is unknown.
func Share(asked, kind string) (share float64, ok bool) {
	best, own := 0.0, 0.0
	for _, a := range accelerators {
		v, ok := a.Half()
		if !ok || !Matches(asked, a.Name) {
			continue
		}
		best = max(best, v)
		if a.Name == kind {
			own = v
		}
	}
	switch {
	case best == 0 || strings.EqualFold(asked, kind):
		return 1, true
	case own == 0:
		return 0, false
	}
	return own / best, true
}
