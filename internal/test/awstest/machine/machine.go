// Package machine runs instances of the emulated cloud as processes on this host: each in namespaces of its own, with
// a metadata service.
package machine

import (
	"net/netip"
	"time"
)

// Options configures the machines of a cloud.
type Options struct {
	Dir  string        // folder for the machines' files
	Net  netip.Prefix  // of their addresses; one cloud on a host has it
	Host string        // address of this host in Net
	Boot time.Duration // from the start to the first line of user data
	// Kill and Shutdown tell the cloud that an instance has failed, or has shut itself down.
	Kill, Shutdown func(id string) error
	// Sign signs an identity document.
	Sign func(document []byte) (string, error)
}

// Guest is an instance as its machine needs it.
type Guest struct {
	ID       string
	Address  netip.Addr
	UserData string // in base64
	// Metadata returns the configuration of the metadata service, with the signature of the identity document.
	Metadata func(signature string) any
}
