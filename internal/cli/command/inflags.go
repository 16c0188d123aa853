package command

import (
	"errors"

	api "scrimp/client"
)

// InFlags returns err, whose problem names a field of a request, so that it names the flag that sets the field. Pairs
// are a field and the name of its flag; "" if several flags or none set it.
func InFlags(err error, pairs ...string) error {
	var p *api.Problem
	if !errors.As(err, &p) {
		return err
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if p.Field != pairs[i] {
			continue
		}
		named := *p
		if named.Field = pairs[i+1]; named.Field != "" {
			named.Field = "--" + named.Field
		}
		return &named
	}
	return err
}
