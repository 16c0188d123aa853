package port

import (
	"fmt"
	"net"
	"testing"

	"scrimp/internal/test/must"
)

func TestReserve_KeepsThePort(t *testing.T) {
	reserved := Reserve(t)
	for range 1000 { // the kernel gives it to nobody
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must.Do(t, err)
		if got := l.Addr().(*net.TCPAddr).Port; got == reserved {
			t.Fatalf("the kernel gave port %d away", got)
		}
		_ = l.Close()
	}
	for _, host := range []string{"", "127.0.0.1"} {
		l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", host, reserved))
		must.Do(t, err)
		_ = l.Close()
	}
}
