package host

import "net"

// FreePort returns a port that nobody listens on now.
func FreePort() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 29500 // torchrun's own default
	}
	port := 29500
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		port = a.Port
	}
	_ = l.Close() // release it for the program
	return port
}
