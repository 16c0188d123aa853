// Package browser drives a headless Chromium for tests over the pipe of its DevTools protocol: it opens no port and
// needs no library.
package browser

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
)

// answers is how long a page may take to evaluate an expression.
const answers = 20 * time.Second

// Browser is a Chromium with one page.
type Browser struct {
	t       testing.TB
	to      io.Writer
	session string

	mu     sync.Mutex
	next   int
	said   map[int]message
	loaded int      // number of loaded pages
	wrong  []string // errors in the page's console
}

type message struct {
	ID     int             `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
	Session string `json:"sessionId,omitempty"`
}

// Start starts a browser that ends with the test.
func Start(t testing.TB) *Browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("chromium is not installed: apt-get install chromium")
	}
	cmd := exec.Command(path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--hide-scrollbars",
		"--force-color-profile=srgb", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir(),
		"about:blank")
	hears, to, err := os.Pipe()
	must.Do(t, err)
	from, says, err := os.Pipe()
	must.Do(t, err)
	cmd.ExtraFiles = []*os.File{hears, says} // file descriptors 3 and 4 of the protocol
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	must.Do(t, cmd.Start())
	_, _ = hears.Close(), says.Close()
	b := &Browser{t: t, to: to, said: map[int]message{}}
	var reads sync.WaitGroup
	reads.Go(func() { b.read(from) })
	t.Cleanup(func() {
		b.send("", "Browser.close", nil)
		_ = cmd.Wait()
		_ = to.Close()
		reads.Wait()
		_ = from.Close()
	})
	var made struct{ TargetID string }
	b.ask("", "Target.createTarget", map[string]any{"url": "about:blank"}, &made)
	var attached struct{ SessionID string }
	b.ask("", "Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.Ask(domain+".enable", nil, nil)
	}
	return b
}

// read handles the browser's messages until it ends.
func (b *Browser) read(from io.Reader) {
	for r := bufio.NewReader(from); ; {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		switch m.Method {
		case "":
			b.said[m.ID] = m
		case "Page.loadEventFired":
			b.loaded++
		case "Runtime.exceptionThrown":
			b.wrong = append(b.wrong, string(m.Params))
		case "Log.entryAdded", "Runtime.consoleAPICalled":
			if strings.Contains(string(m.Params), `"level":"error"`) || strings.Contains(string(m.Params), `"type":"error"`) {
				b.wrong = append(b.wrong, string(m.Params))
			}
		}
		b.mu.Unlock()
	}
}

func (b *Browser) send(session, method string, params any) int {
	b.mu.Lock()
	b.next++
	id := b.next
	b.mu.Unlock()
	text, err := json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	if session != "" {
		text, err = json.Marshal(map[string]any{"id": id, "method": method, "params": params, "sessionId": session})
	}
	if err == nil {
		_, err = b.to.Write(append(text, 0))
	}
	if err != nil {
		b.t.Logf("tell the browser %s: %v", method, err)
	}
	return id
}

// reply sends a command and waits for the browser's response. If the page navigates away, the response may be lost:
// then none comes within the limit.
func (b *Browser) reply(session, method string, params any, limit time.Duration) (m message, ok bool) {
	id := b.send(session, method, params)
	for begun := time.Now(); !ok && time.Since(begun) < limit; {
		b.mu.Lock()
		m, ok = b.said[id]
		delete(b.said, id)
		b.mu.Unlock()
		if !ok {
			time.Sleep(2 * time.Millisecond)
		}
	}
	return m, ok
}

func (b *Browser) ask(session, method string, params, out any) {
	b.t.Helper()
	if params == nil {
		params = map[string]any{}
	}
	m, ok := b.reply(session, method, params, eventually.Limit)
	if !ok {
		b.t.Fatalf("%s: the browser does not answer", method)
	}
	if m.Error != nil {
		b.t.Fatalf("%s: %s", method, m.Error.Message)
	}
	if out != nil {
		if err := json.Unmarshal(m.Result, out); err != nil {
			b.t.Fatalf("%s: %v", method, err)
		}
	}
}

// Ask sends a command of the DevTools protocol to the page.
func (b *Browser) Ask(method string, params, out any) { b.ask(b.session, method, params, out) }

// Size sets the width and height of the page, and its colour scheme.
func (b *Browser) Size(width, height int, dark bool) {
	b.Ask("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1,
		"mobile": false}, nil)
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.Ask("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{
		{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Go opens an address and waits until it has loaded.
func (b *Browser) Go(url string) {
	b.t.Helper()
	before := b.loads()
	b.Ask("Page.navigate", map[string]any{"url": url}, nil)
	eventually.True(b.t, url+" has loaded", func() bool { return b.loads() > before })
}

func (b *Browser) loads() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.loaded
}

// Eval evaluates an expression in the page into out. It awaits promises.
func (b *Browser) Eval(expression string, out any) {
	b.t.Helper()
	if err := b.try(expression, out); err != nil {
		b.t.Fatalf("%.200s: %v", expression, err)
	}
}

// try is Eval with an error: if the page navigates away, the response is lost.
func (b *Browser) try(expression string, out any) error {
	m, ok := b.reply(b.session, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true,
		"awaitPromise": true}, answers)
	switch {
	case !ok:
		return errors.New("the browser does not answer")
	case m.Error != nil:
		return errors.New(m.Error.Message)
	}
	var got struct {
		Result struct {
			Value json.RawMessage
		}
		ExceptionDetails *struct {
			Exception struct{ Description string }
		}
	}
	if err := json.Unmarshal(m.Result, &got); err != nil {
		return err
	}
	if e := got.ExceptionDetails; e != nil {
		return errors.New(e.Exception.Description)
	}
	if out != nil && got.Result.Value != nil {
		return json.Unmarshal(got.Result.Value, out)
	}
	return nil
}

// Until waits until an expression is true in the page.
func (b *Browser) Until(expression string) {
	b.t.Helper()
	eventually.True(b.t, expression, func() (ok bool) {
		return b.try("Boolean("+expression+")", &ok) == nil && ok
	}, func() (text string) {
		_ = b.try("location.href + ' ' + document.body.innerText", &text)
		return text
	})
}

// Picture returns the page as a PNG: all of it, or what fits its size.
func (b *Browser) Picture(whole bool) []byte {
	b.t.Helper()
	var got struct{ Data string }
	b.Ask("Page.captureScreenshot", map[string]any{"captureBeyondViewport": whole}, &got)
	png, err := base64.StdEncoding.DecodeString(got.Data)
	must.Do(b.t, err)
	return png
}

// Errors returns the errors in the page's console since the last call.
func (b *Browser) Errors() (list []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list, b.wrong = b.wrong, nil
	return list
}

// Save writes a picture below the folder in SCRIMP_PICTURES, if that is set.
func (b *Browser) Save(name string) {
	b.t.Helper()
	folder := os.Getenv("SCRIMP_PICTURES")
	if folder == "" {
		return
	}
	must.Do(b.t, os.WriteFile(fmt.Sprintf("%s/%s.png", folder, name), b.Picture(true), 0o644))
}
