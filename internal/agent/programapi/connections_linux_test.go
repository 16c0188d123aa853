package programapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"scrimp/internal/test/eventually"
	"scrimp/internal/wire/api"
)

// calm is a Backend that accepts everything.
type calm struct{}

func (calm) Progress(api.Step) error { return nil }

func (calm) Save(context.Context, int64) error { return nil }

func (calm) State() State { return State{} }

func (calm) Search(context.Context, []byte) (int, []byte, error) { return 0, nil, errors.New("none") }

func (calm) Total() int64 { return 0 }

// openFiles returns the number of open files of this process.
func openFiles() int {
	list, _ := os.ReadDir("/proc/self/fd")
	return len(list)
}

// Any process on the machine may connect and send nothing, half a header or a wrong token: the
// agent keeps its file descriptors, and still answers the program that has the token.
func TestServe_LimitsConnections(t *testing.T) {
	p, err := Serve(calm{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ask := func(token string) error {
		r, _ := http.NewRequest(http.MethodGet, p.URL+"/v1/state", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s, %w", resp.Status, errors.Join(err))
		}
		return errors.Join(err, resp.Body.Close())
	}
	if err := ask(p.Token); err != nil { // its connection is idle from now on
		t.Fatal(err)
	}
	before := openFiles()
	var mine []net.Conn
	for i := range 3 * maxConnections {
		c, err := net.Dial("tcp", strings.TrimPrefix(p.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		mine = append(mine, c)
		_, _ = c.Write([]byte(map[int]string{1: "GET / HTTP/1.1\r\nX: ", 2: "GET / HTTP/1.1\r\nHost: x\r\n\r\n"}[i%3]))
	}
	eventually.True(t, "the agent lets go of those that are too many", func() bool {
		return openFiles()-before-len(mine) <= maxConnections+1
	})
	if err := ask(p.Token); err != nil {
		t.Errorf("the program is not answered: %v", err)
	}
	if ask("wrong") == nil {
		t.Error("a wrong token is taken")
	}
}
