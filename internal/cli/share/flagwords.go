package share

import (
	"errors"

	api "scrimp/client"
)

// inFlags returns err with the flag in place of the field of the request that the server's answer names: a user of the
// command line has not written the request.
func inFlags(err error, flags map[string]string) error {
	p, ok := errors.AsType[*api.Problem](err)
	if !ok || flags[p.Field] == "" {
		return err
	}
	said := *p
	said.Field = flags[p.Field]
	return &said
}
