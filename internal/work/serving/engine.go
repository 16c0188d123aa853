package serving

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"scrimp/internal/market/accelerator"
	"scrimp/internal/market/catalog"
	"scrimp/internal/work/serving/load"
	"scrimp/internal/work/serving/simulation"
)

// engineOf returns what answers requests on a machine, or why nothing does. u notes the measurements
// that are used.
func engineOf(l catalog.Listing, m *load.Model, ask Ask, u uses) (key string, e Engine, why string) {
	o := l.Offer
	spec, known := l.Spec()
	if times, ok := ask.Measured[strings.ToLower(o.Machine)]; ok {
		u.add(strings.ToLower(o.Machine), o.Machine)
		return "machine " + o.Machine, Engine{Service: times, Slots: 1, Batch: min(load.MaxBatch, times.Largest())}, ""
	}
	key = fmt.Sprintf("%s:%d %v", o.Accelerator, o.Accelerators, l.Link)
	if name, ok := measuredName(o.Accelerator, ask.Measured); ok && o.Accelerators > 0 {
		u.add(name, o.Accelerator)
		times := ask.Measured[name]
		// Who measured it knows that it fits, and in which format.
		return key, Engine{Service: times, Slots: o.Accelerators, Batch: min(load.MaxBatch, times.Largest())}, ""
	}
	switch {
	case m == nil || !known || o.Accelerators == 0:
		return "", e, NoSpeed
	case spec.Memory == 0:
		return "", e, NoMemory
	}
	fit, ok := m.Fits(ask.Formats, spec, o.Accelerators)
	if !ok {
		return "", e, TooSmall
	}
	e = Engine{Slots: fit.Copies, Batch: fit.Batch, Fit: &fit}
	for _, s := range []struct {
		effort load.Effort
		to     *simulation.Service
	}{{load.Typical, &e.Service}, {load.Fast, &e.Fast}, {load.Slow, &e.Slow}} {
		r, ok := load.NewRoofline(m, fit, spec, l.Link, s.effort)
		if !ok {
			return "", e, NoSpeed
		}
		*s.to = r
	}
	return key, e, ""
}

// measuredName returns the measurements of an accelerator: those with its full name, or else the first in the order of
// names that means it.
func measuredName(kind string, all map[string]load.Measured) (string, bool) {
	if name := strings.ToLower(kind); all[name] != nil {
		return name, true
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if kind != "" && accelerator.Matches(name, kind) {
			return name, true
		}
	}
	return "", false
}

// uses is which offers each measurement holds for, by its name in lower case: the names of accelerators, machines or
// functions.
type uses map[string][]string

func (u uses) add(name, of string) {
	if !slices.Contains(u[name], of) {
		u[name] = append(u[name], of)
	}
}

// notes says what part of the measurements no offer uses, and which of them hold for several accelerators. A name that
// nothing has is an error where the functions are known, or where the file has no other name.
func (u uses) notes(c catalog.Catalog, ask Ask) (notes []string, err error) {
	if len(ask.Measured) == 0 {
		return nil, nil
	}
	var idle, unknown []string
	for _, name := range slices.Sorted(maps.Keys(ask.Measured)) {
		written := ask.Measured[name].Name(name)
		switch of := u[name]; {
		case len(of) > 1:
			notes = append(notes, fmt.Sprintf("the measurements of %s hold for %d kinds: %s; a row with the full name of one "+
				"takes precedence", written, len(of), strings.Join(slices.Sorted(slices.Values(of)), ", ")))
		case len(of) == 1:
		case isKnown(name, c):
			idle = append(idle, written)
		default:
			unknown = append(unknown, written)
		}
	}
	if len(unknown) > 0 && (len(ask.Functions) > 0 || len(unknown) == len(ask.Measured)) {
		return nil, fmt.Errorf("--measured names %q, which is no accelerator or machine of the catalogue and no function of "+
			"--serverless: correct the name", unknown[0])
	}
	if len(idle) > 0 {
		notes = append(notes, fmt.Sprintf("measurements that no selected offer uses: %s (it is not selected, or a more "+
			"exact name takes precedence)", strings.Join(idle, ", ")))
	}
	if len(unknown) > 0 {
		notes = append(notes, fmt.Sprintf("measurements of a name that the catalogue does not have: %s (a function needs "+
			"--serverless)", strings.Join(unknown, ", ")))
	}
	return notes, nil
}

// isKnown reports whether a name of measurements is a machine or an accelerator of a catalogue.
func isKnown(name string, c catalog.Catalog) bool {
	return slices.ContainsFunc(c.Listings, func(l catalog.Listing) bool {
		return strings.EqualFold(name, l.Offer.Machine) ||
			l.Offer.Accelerator != "" && accelerator.Matches(name, l.Offer.Accelerator)
	})
}
