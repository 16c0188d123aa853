package engine

import (
	"context"
	"errors"
)

// Identifier is implemented by drivers whose machines start without a secret, and prove their
// identity with a document that the provider signs.
type Identifier interface {
	// Identify returns the id of the machine that the evidence belongs to, and the key of its
	// launch. ErrImpostor means that it is not a machine of this engine; retrying is useless.
	Identify(ctx context.Context, e Evidence) (instance, key string, err error)
	// Program returns the hash of the program that its machines fetch from the server, or "" if
	// they fetch none.
	Program() string
}

// Evidence proves the identity of a machine.
type Evidence struct {
	Document  []byte // the provider's document about the machine
	Signature []byte // the provider's signature of it
}

// ErrImpostor reports evidence that the provider did not sign, or that belongs to another account's machine.
var ErrImpostor = errors.New("it is not a machine of this engine")
