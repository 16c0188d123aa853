package command

import (
	"errors"

	api "scrimp/client"
)

// InFlags returns err with the flag in place of the field of the request that the server's answer names: a user of the
// command line has not written the request.
func InFlags(err error, flags map[string]string) error {
	p, ok := errors.AsType[*api.Problem](err)
	if !ok || flags[p.Field] == "" {
		return err
	}
	said := *p
	said.Field = flags[p.Field]
	return &said
}
