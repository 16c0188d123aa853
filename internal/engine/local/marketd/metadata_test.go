package marketd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"scrimp/internal/agent/notice"
	"scrimp/internal/engine"
	"scrimp/internal/market"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/test/proc"
)

// endpoint returns the address of the machine's metadata service, or "" while the machine does not run.
func (c *cloud) endpoint(id string) string {
	for v := range strings.SplitSeq(c.machineFile(id, "env"), "\n") {
		if e, ok := strings.CutPrefix(v, "AWS_EC2_METADATA_SERVICE_ENDPOINT="); ok {
			return strings.TrimRight(e, "/")
		}
	}
	return ""
}

// ask returns the status and body of a metadata response; 0 means none.
func ask(method, url string, header ...string) (int, string) {
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Limit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return 0, err.Error()
	}
	for n := 0; n+1 < len(header); n += 2 {
		r.Header.Set(header[n], header[n+1])
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = a.Body.Close() }()
	b, _ := io.ReadAll(a.Body)
	return a.StatusCode, string(b)
}

const (
	tokenName = "X-aws-ec2-metadata-token"
	tokenTTL  = "X-aws-ec2-metadata-token-ttl-seconds"
)

func (c *cloud) awsDocument(id, path string) string {
	base := c.endpoint(id)
	if base == "" {
		return ""
	}
	status, token := ask(http.MethodPut, base+"/latest/api/token", tokenTTL, "60")
	if status != http.StatusOK {
		return ""
	}
	if status, v := ask(http.MethodGet, base+"/latest/meta-data/"+path, tokenName, token); status == http.StatusOK {
		return v
	}
	return ""
}

// noticeTrace returns a market with one spot offer, which is interrupted after a wall time, with a notice.
func noticeTrace(speed float64, after, warning time.Duration) market.Trace {
	t := testTrace(speed)
	for n := range t.Lines {
		if o := &t.Lines[n].Offer; o.ID == fleeing {
			o.MaxLifetime, o.Notice = time.Duration(float64(after)*speed), warning
		}
	}
	return t
}

func TestMetadata_AnnouncesInWallTimeAtAnySpeed(t *testing.T) {
	for _, speed := range []float64{1, 60, 3600} {
		t.Run(fmt.Sprintf("speed=%g", speed), func(t *testing.T) {
			t.Parallel()
			const life, warning = 30 * time.Minute, 10 * time.Minute
			trace := noticeTrace(speed, life, warning)
			for n := range trace.Lines {
				trace.Lines[n].Offer.Billing = market.Billing{Minimum: time.Hour, FreeIfInterruptedWithin: 60 * time.Hour}
			}
			c := newCloud(t, trace)
			asked := time.Now()
			i := c.launch("a.1", fleeing, "PLAY=env")
			lost := time.Now().Add(life)
			c.until("its address", func() bool { return c.endpoint(i.ID) != "" })
			base := c.endpoint(i.ID)
			other := c.launch("b.1", fleeing, "PLAY=env") // terminated during its notice
			ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
			defer cancel()
			var mu sync.Mutex
			found := map[string]notice.Notice{}
			watched := make(chan struct{})
			go func() {
				defer close(watched)
				notice.Watch(ctx, notice.Endpoints{AWS: base + "/", GCE: strings.TrimPrefix(base, "http://"), Azure: base}, nil, func(n notice.Notice) {
					mu.Lock()
					defer mu.Unlock()
					if _, twice := found[n.Source]; twice {
						t.Errorf("%s is told twice", n.Source)
					}
					if found[n.Source] = n; len(found) == 3 {
						cancel()
					}
				})
			}()
			c.ahead(life - warning - 5*time.Minute)
			if at := c.instance(i.ID).Interrupts; !at.IsZero() || c.awsDocument(i.ID, "spot/instance-action") != "" {
				t.Errorf("its interruption is told before it is announced; listed is %v", at)
			}
			mu.Lock()
			if len(found) > 0 {
				t.Errorf("found before it is announced: %v", found)
			}
			mu.Unlock()
			c.ahead(life - warning)
			<-watched
			if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, []string{"aws", "azure", "gcp"}) {
				t.Fatalf("found by %v", got)
			}
			c.until("the notice in the list", func() bool { return !c.instance(other.ID).Interrupts.IsZero() })
			must.Do(t, c.Terminate(t.Context(), other.ID))
			for _, i := range []engine.Instance{c.instance(i.ID), c.instance(other.ID)} {
				if want := i.Launched.Add(time.Duration(float64(life) * speed)); !i.Interrupts.Equal(want) {
					t.Errorf("%s (%s) is listed to be interrupted at %v, want %v", i.ID, i.State, i.Interrupts, want)
				}
			}
			for source, slack := range map[string]time.Duration{"aws": 0, "azure": time.Second} { // HTTP dates have whole seconds
				if u := found[source].Until; u.Before(asked.Add(life-slack)) || u.After(lost) {
					t.Errorf("%s says until %v, want %v to %v", source, u, asked.Add(life), lost)
				}
			}
			if got := c.instance(i.ID); got.State != engine.Running {
				t.Errorf("under notice it is %+v", got)
			}
			c.ahead(life)
			c.until("its end", func() bool { return c.instance(i.ID).State == engine.Ended })
			end := c.instance(i.ID)
			if end.Notice != warning || end.Ended.Sub(end.Launched) != time.Duration(float64(life)*speed) {
				t.Errorf("ended as %+v, want a notice of %v", end, warning)
			}
			// At lower speeds the offer's rule that an early interruption is free applies.
			var sum string
			for _, l := range end.Bill {
				sum += l.Rule + " "
			}
			want := map[float64]string{1: " minimum interrupted-early ", 60: " interrupted-early ", 3600: " "}[speed]
			if sum != want {
				t.Errorf("the bill's rules are %q, want %q", sum, want)
			}
		})
	}
}

func TestMetadata_RefusesLikeClouds(t *testing.T) {
	t.Parallel()
	c := newCloud(t, testTrace(60))
	i := c.launch("a.1", always, "PLAY=env")
	c.until("its address", func() bool { return c.endpoint(i.ID) != "" })
	base := c.endpoint(i.ID)
	_, token := ask(http.MethodPut, base+"/latest/api/token", tokenTTL, "21600")
	_, brief := ask(http.MethodPut, base+"/latest/api/token", tokenTTL, "1")
	for _, q := range []struct {
		name, method, path string
		header             []string
		want               int
	}{
		{"a token without a lifetime", "PUT", "/latest/api/token", nil, 400},
		{"a token for ever", "PUT", "/latest/api/token", []string{tokenTTL, "21601"}, 400},
		{"a token through a proxy", "PUT", "/latest/api/token", []string{tokenTTL, "60", "X-Forwarded-For", "10.0.0.1"}, 403},
		{"no token", "GET", "/latest/meta-data/instance-id", nil, 401},
		{"another's token", "GET", "/latest/meta-data/instance-id", []string{tokenName, "guessed"}, 401},
		{"the id", "GET", "/latest/meta-data/instance-id", []string{tokenName, token}, 200},
		{"a notice that was not given", "GET", "/latest/meta-data/spot/instance-action", []string{tokenName, token}, 404},
		{"Compute Engine without its header", "GET", "/computeMetadata/v1/instance/preempted", nil, 403},
		{"Compute Engine", "GET", "/computeMetadata/v1/instance/preempted", []string{"Metadata-Flavor", "Google"}, 200},
		{"Azure without its header", "GET", "/metadata/scheduledevents?api-version=2020-07-01", nil, 400},
		{"Azure without a version", "GET", "/metadata/scheduledevents", []string{"Metadata", "true"}, 400},
		{"Azure", "GET", "/metadata/scheduledevents?api-version=2020-07-01", []string{"Metadata", "true"}, 200},
	} {
		if got, body := ask(q.method, base+q.path, q.header...); got != q.want {
			t.Errorf("%s: %d %s, want %d", q.name, got, body, q.want)
		}
	}
	c.ahead(time.Minute)
	for token, want := range map[string]int{brief: http.StatusUnauthorized, token: http.StatusOK} {
		if status, _ := ask(http.MethodGet, base+"/latest/meta-data/instance-id", tokenName, token); status != want {
			t.Errorf("a minute later a token is answered with %d, want %d", status, want)
		}
	}
	c.kill() // tokens of an earlier daemon are invalid: the watcher requests a new one
	c.start()
	c.until("the metadata after a restart", func() bool {
		status, _ := ask(http.MethodGet, base+"/latest/meta-data/instance-id", tokenName, token)
		return status == http.StatusUnauthorized
	})
	if got := c.awsDocument(i.ID, "instance-id"); got != i.ID {
		t.Errorf("the id is %q", got)
	}
}

// startMock starts Amazon's mock of the metadata service and returns its address. The mock does not
// accept an open listener, so startMock tries the next port if another program takes the first.
func startMock(t *testing.T) string {
	t.Helper()
	mock, err := exec.LookPath(cmp.Or(os.Getenv("SCRIMP_EC2_METADATA_MOCK"), "ec2-metadata-mock"))
	if err != nil {
		t.Skip("ec2-metadata-mock is not installed; .ci/run installs it")
	}
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must.Do(t, err)
		address := l.Addr().(*net.TCPAddr)
		_ = l.Close()
		cmd := exec.Command(mock, "spot", "--action", "terminate", "--imdsv2", "-n", "127.0.0.1", "-p", strconv.Itoa(address.Port))
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		p := proc.Start(t, cmd)
		ended := make(chan error, 1)
		go func() { ended <- p.Wait() }()
		var end error
		eventually.True(t, "the mock answers or ends", func() bool {
			select {
			case end = <-ended:
				end = cmp.Or(end, io.EOF)
				return true
			default:
			}
			status, _ := ask(http.MethodPut, "http://"+address.String()+"/latest/api/token", tokenTTL, "60")
			return status == http.StatusOK
		})
		if end == nil {
			return "http://" + address.String()
		}
		if !strings.Contains(said.String(), "address already in use") {
			t.Fatalf("the mock ended: %v\n%s", end, said.String())
		}
	}
}

func TestMetadata_MatchesAmazonsMock(t *testing.T) {
	lane.Component(t, "aws")
	theirs := startMock(t)
	c := newCloud(t, noticeTrace(60, 30*time.Second, 29*time.Second+900*time.Millisecond))
	i := c.launch("a.1", fleeing, "PLAY=env")
	c.until("the notice", func() bool { return c.awsDocument(i.ID, "spot/instance-action") != "" })
	ours := c.endpoint(i.ID)
	_, ourToken := ask(http.MethodPut, ours+"/latest/api/token", tokenTTL, "60")
	_, theirToken := ask(http.MethodPut, theirs+"/latest/api/token", tokenTTL, "60")
	for _, q := range []struct {
		method, path, header string
		token                bool
	}{
		{http.MethodPut, "/latest/api/token", "", false},
		{http.MethodGet, "/latest/meta-data/instance-id", "", false},
		{http.MethodGet, "/latest/meta-data/instance-id", "", true},
		{http.MethodGet, "/latest/meta-data/placement/availability-zone", "", true},
		{http.MethodGet, "/latest/meta-data/spot/instance-action", "", false},
		{http.MethodGet, "/latest/meta-data/spot/instance-action", "", true},
		{http.MethodGet, "/latest/meta-data/no-such-thing", "", true},
	} {
		header := func(token string) []string {
			if q.token {
				return []string{tokenName, token}
			}
			return nil
		}
		a, our := ask(q.method, ours+q.path, header(ourToken)...)
		b, their := ask(q.method, theirs+q.path, header(theirToken)...)
		if a != b {
			t.Errorf("%s %s (token: %v): we say %d, the mock says %d", q.method, q.path, q.token, a, b)
		}
		if a == http.StatusOK && strings.HasPrefix(their, "{") {
			if x, y := fields(t, our), fields(t, their); !slices.Equal(x, y) {
				t.Errorf("%s has the fields %v, the mock's %v", q.path, x, y)
			}
		}
	}
}

func fields(t *testing.T, text string) []string {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return slices.Sorted(maps.Keys(v))
}

// Each machine has its own address, which its metadata returns in every form and which survives a
// restart of the market. Listeners on one address can be reached from another.
func TestMachines_HaveOwnAddresses(t *testing.T) {
	t.Parallel()
	c := newCloud(t, testTrace(60))
	var addresses []string
	for n := range 3 {
		i := c.launch(fmt.Sprintf("a.%d", n), always, "PLAY=env")
		c.until("its address", func() bool { return c.endpoint(i.ID) != "" })
		own, base := c.awsDocument(i.ID, "local-ipv4"), c.endpoint(i.ID)
		if net.ParseIP(own) == nil || !net.ParseIP(own).IsLoopback() {
			t.Fatalf("the address of %s is %q", i.ID, own)
		}
		_, gce := ask(http.MethodGet, base+"/computeMetadata/v1/instance/network-interfaces/0/ip", "Metadata-Flavor", "Google")
		_, azure := ask(http.MethodGet, base+"/metadata/instance/network/interface/0/ipv4/ipAddress/0/privateIpAddress?api-version=2021-02-01&format=text", "Metadata", "true")
		if gce != own || azure != own {
			t.Errorf("the address of %s is %q, %q as Compute Engine says it, %q as Azure does", i.ID, own, gce, azure)
		}
		if ctx := t.Context(); n == 0 {
			if found, err := notice.Address(ctx, notice.Endpoints{AWS: base + "/"}, nil); found != own || err != nil {
				t.Errorf("the agent finds %q, %v", found, err)
			}
			c.kill()
			c.start()
			c.until("the same address after a restart", func() bool { return c.awsDocument(i.ID, "local-ipv4") == own })
		}
		addresses = append(addresses, own)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(addresses[0], "0"))
	must.Do(t, err)
	defer func() { _ = l.Close() }()
	for n, other := range addresses[1:] {
		if slices.Contains(addresses[:n+1], other) && other != "127.0.0.1" { // the system has no other address
			t.Errorf("two machines have the address %s", other)
		}
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(other)}}
		conn, err := from.DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatalf("%s does not reach %s: %v", other, addresses[0], err)
		}
		_ = conn.Close()
	}
}
