package foreign

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/market"
	"scrimp/internal/market/accelerator"
	"scrimp/internal/market/catalog"
)

// machineTypes holds the offer of each machine type of the catalogue, by its name in lower case.
var machineTypes = sync.OnceValue(func() map[string]market.Offer {
	all := map[string]market.Offer{}
	for _, l := range catalog.Builtin().Listings {
		if l.Plain() {
			all[strings.ToLower(l.Offer.Machine)] = l.Offer
		}
	}
	return all
})

// machineType sets in r what the named machine type has, unless r says it already. It returns false for a type that the
// catalogue does not know.
func machineType(r *yaml.Node, name string) bool {
	o, ok := machineTypes()[strings.ToLower(name)]
	if !ok {
		return false
	}
	put := func(key, value string) {
		if find(r, key) == nil {
			set(r, key, text(value))
		}
	}
	if o.Accelerators > 0 {
		put("accelerator", join(o.Accelerator, strconv.Itoa(o.Accelerators)))
		return true
	}
	put("cpus", fmt.Sprintf("%d+", o.CPUs))
	if o.Memory > 0 {
		put("memory", fmt.Sprintf("%dGiB+", o.Memory>>30))
	}
	return true
}

// tpuSlice matches the name of a slice of TPUs: tpu-v5litepod-8, v6e-4, v5p-16.
var tpuSlice = regexp.MustCompile(`^(?:tpu-)?v(5litepod|5e|5p|6e|4)-([0-9]+)$`)

// tpu returns the accelerators of a TPU slice. The number counts chips, of v4 and v5p cores, which are two a chip.
func tpu(name string) (string, bool) {
	m := tpuSlice.FindStringSubmatch(strings.ToLower(name))
	if m == nil {
		return "", false
	}
	kind := map[string]string{"5litepod": "TPU-v5e", "5e": "TPU-v5e", "5p": "TPU-v5p", "6e": "TPU-v6e",
		"4": "TPU-v4"}[m[1]]
	n, err := strconv.Atoi(m[2])
	if m[1] == "4" || m[1] == "5p" {
		n /= 2
	}
	return join(kind, strconv.Itoa(max(1, n))), err == nil
}

// named returns the kind of accelerator that a word of a text names, such as a partition gpu_h100, or "".
func named(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return strings.ContainsRune("-_&|, *()[]", r) })
	for i, w := range words {
		for _, a := range accelerator.Accelerators() {
			if strings.Trim(w, "0123456789") == "" || !accelerator.Matches(w, a.Name) {
				continue
			}
			kind := strings.ToUpper(w)
			if i+1 < len(words) {
				size := strings.ToUpper(strings.TrimSuffix(words[i+1], "b")) // 80g and 80gb
				if with := kind + "-" + size + "B"; strings.HasSuffix(size, "G") && known(with) {
					return with
				}
			}
			return kind
		}
	}
	return ""
}

// known reports whether the catalogue has an accelerator of the kind.
func known(kind string) bool {
	for _, a := range accelerator.Accelerators() {
		if accelerator.Matches(kind, a.Name) {
			return true
		}
	}
	return false
}
