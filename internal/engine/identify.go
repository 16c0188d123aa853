package engine

import (
	"context"
	"errors"
)

// Identifier is what a driver also does whose machines begin without a secret, and show who they are by what their
// provider signs.
type Identifier interface {
	// Identify returns the id of the machine that evidence is of, and the key that it was launched with. An error that
	// is ErrImpostor means that it is of none of ours; asking again is useless.
	Identify(ctx context.Context, e Evidence) (instance, key string, err error)
	// Program is the hash of the program that its machines fetch from the server; "": none does.
	Program() string
}

// Evidence is what a machine shows.
type Evidence struct {
	Document  []byte // that the provider wrote about the machine
	Signature []byte // of it, the provider's
}

// ErrImpostor is what is wrong with evidence that the provider has not signed, or that is of a machine of somebody
// else.
var ErrImpostor = errors.New("it is no machine of this engine")
