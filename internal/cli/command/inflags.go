package command

import (
	"errors"

	api "scrimp/client"
)

// InFlags returns err, whose problem names a field of a request, so that it names the flag that sets the field: a user
// of the command line has not written the request. A field whose flag is empty is left out.
func InFlags(err error, flags map[string]string) error {
	p, ok := errors.AsType[*api.Problem](err)
	if !ok {
		return err
	}
	flag, known := flags[p.Field]
	if !known {
		return err
	}
	named := *p
	named.Field = flag
	return &named
}
