package logship

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"scrimp/internal/agent/wire"
	"scrimp/internal/test/lane"
)

// slowServer accepts a limited number of bytes a second, sometimes loses a part, and is unreachable
// for a while.
type slowServer struct {
	rate  int64
	mu    sync.Mutex
	log   []byte
	taken time.Time
	left  int64
	away  bool
	loses func() int // bytes that it lost at the end
}

var errAway = errors.New("away")

func (s *slowServer) LogEnd(context.Context, string) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return 0, errAway
	}
	return int64(len(s.log)), nil
}

func (s *slowServer) Logs(_ context.Context, _ string, offset int64, chunk []byte) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.left = min(2*s.rate, s.left+int64(now.Sub(s.taken).Seconds()*float64(s.rate)))
	s.taken = now
	switch {
	case s.away:
		return 0, errAway
	case s.left < int64(len(chunk)):
		return 0, &wire.LaterError{After: time.Second}
	case offset > int64(len(s.log)):
		return int64(len(s.log)), nil
	}
	s.left -= int64(len(chunk))
	if end := offset + int64(len(chunk)); end > int64(len(s.log)) {
		s.log = append(s.log[:offset], chunk...)
	}
	if s.loses != nil {
		s.log = s.log[:len(s.log)-min(len(s.log), s.loses())]
	}
	return int64(len(s.log)), nil
}

// A program prints 100 times as fast as the server accepts. The log is the output, in order, with
// lines that say how many bytes are missing where; together they account for all output. The
// program never waits, and the disk holds only a part. This holds if the server loses the log's end
// or all of it (seeds from 2 on, 6 on), if it is unreachable (odd seeds), and if the agent is
// restarted (from 4 on).
func TestShipper_CutsOutputThatComesTooFast(t *testing.T) {
	t.Parallel()
	for seed := uint64(lane.Pick(6, 0)); seed < 8; seed++ {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			small := limits{backlog: 1 << 20, tail: 64 << 10, spare: 512 << 10}
			server := &slowServer{rate: 300 << 10, taken: time.Now()}
			if seed >= 2 {
				server.loses = func() int {
					if rng.IntN(20) > 0 {
						return 0
					}
					return rng.IntN(100 << 10)
				}
			}
			path := filepath.Join(dir, "log")
			out, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var s *Shipper
			var done, caught chan struct{}
			begin := func() {
				var once sync.Once
				caught, done = make(chan struct{}), make(chan struct{})
				end := caught
				s = New(path, "a.1", server, NewMasker(map[string]string{"KEY": "sesame"}), slog.New(slog.DiscardHandler), func() { once.Do(func() { close(end) }) })
				s.limits = small
				go func(s *Shipper, ctx context.Context, done chan struct{}) { defer close(done); s.Run(ctx) }(s, ctx, done)
			}
			begin()
			lines, widest := 0, int64(0)
			var block bytes.Buffer
			for tick := range 100 { // 30 MB in 10 s
				block.Reset()
				for range 3000 {
					fmt.Fprintf(&block, "line %09d sesame %s\n", lines, strings.Repeat("x", 80))
					lines++
				}
				if _, err := out.Write(block.Bytes()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond)
				if st, err := os.Stat(path); err == nil {
					widest = max(widest, st.Sys().(*syscall.Stat_t).Blocks*512)
				}
				server.mu.Lock()
				server.away = seed%2 == 1 && tick > 30 && tick < 70
				if seed >= 6 && tick == 80 {
					server.log = nil // restored from a backup
				}
				server.mu.Unlock()
				if seed >= 4 && tick == 50 { // the agent restarts
					cancel()
					<-done
					ctx, cancel = context.WithCancel(t.Context())
					begin()
				}
			}
			size := SizeOf(path)
			s.Finish()
			<-caught
			if s.Size() != int64(len(server.log)) {
				t.Errorf("seed %d: the log is %d bytes long, and the server has %d", seed, s.Size(), len(server.log))
			}
			cancel()
			<-done
			_ = out.Close()

			total, dropped, next, cuts := int64(0), int64(0), 0, 0
			in := bufio.NewReader(bytes.NewReader(server.log))
			for {
				line, err := in.ReadString('\n')
				if errors.Is(err, io.EOF) {
					break
				}
				var n, number int64
				switch {
				case strings.HasPrefix(line, "scrimp: "):
					if _, err := fmt.Sscanf(line, "scrimp: %d bytes of output", &n); err != nil || !strings.Contains(line, "are left out here, at 2000-01-01T") {
						t.Fatalf("seed %d: %q", seed, line)
					}
					dropped += n
					cuts++
					continue
				case line == "\n": // a cut in the middle of a line
					continue
				}
				if strings.IndexByte(line, 0) >= 0 {
					t.Fatalf("seed %d: what the disk has no more is sent as nothing, %d bytes long", seed, len(line))
				}
				if _, err := fmt.Sscanf(line, "line %d ", &number); err == nil {
					if len(line) == 103 && !strings.HasPrefix(line[15:], "****** x") {
						t.Fatalf("seed %d: a line is not as it was printed: %q", seed, line)
					}
					if int(number) < next {
						t.Fatalf("seed %d: line %d comes after line %d", seed, number, next-1)
					}
					next = int(number) + 1
				}
				total += int64(len(line))
			}
			if next != lines {
				t.Errorf("seed %d: the last line is %d of %d", seed, next, lines)
			}
			if got := total + dropped; got < size-int64(cuts) || got > size+int64(cuts) || cuts == 0 {
				t.Errorf("seed %d: %d bytes are there and %d are said to be left out at %d places, which is not the %d that were printed", seed, total, dropped, cuts, size)
			}
			if kept := int64(len(server.log)); kept > 12*server.rate+3*small.backlog {
				t.Errorf("seed %d: %d bytes were sent in 10 s at %d a second", seed, kept, server.rate)
			}
			if s.fixed {
				t.Logf("the disk of %s gives nothing back", dir)
			} else if widest > 4*small.backlog+size*int64(logError/time.Second)/10 { // plus the output between two polls
				t.Errorf("seed %d: the output took %d bytes of disk of %d that were printed, with %d that may wait", seed, widest, size, small.backlog)
			}
			t.Logf("seed %d: %d of %d bytes were kept, %d cuts, at most %d on disk", seed, total, size, cuts, widest)
		})
	}
}
