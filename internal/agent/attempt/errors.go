package attempt

import "errors"

// Why an attempt ends before all is said.
var (
	ErrOver = errors.New("the attempt is over")
	// ErrDissolved says that the server ends the attempt on all machines of its gang, and has the next one begin.
	ErrDissolved = errors.New("the gang is dissolved")
)
