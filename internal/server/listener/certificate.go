package listener

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// rereadEvery is the lowest interval between checks of the certificate files.
const rereadEvery = 10 * time.Second

// certificateFiles serves a certificate and reads its files again after a change, so that a renewal needs no restart
// of the server.
type certificateFiles struct {
	cert, key string
	log       *slog.Logger
	every     time.Duration

	mu     sync.Mutex
	now    *tls.Certificate
	looked time.Time // time of the last check
	state  string    // fingerprint of the files at that time
}

// open reads the files.
func (c *certificateFiles) open() (err error) {
	c.looked, c.state = time.Now(), c.stat()
	c.now, err = c.read()
	return err
}

func (c *certificateFiles) read() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w: --tls-cert and --tls-key are files in PEM", err)
	}
	return &pair, nil
}

// stat returns a fingerprint of the files: their times and sizes.
func (c *certificateFiles) stat() (state string) {
	for _, path := range []string{c.cert, c.key} {
		if at, err := os.Stat(path); err == nil {
			state += fmt.Sprint(at.ModTime().UnixNano(), at.Size(), " ")
		}
	}
	return state
}

// get implements tls.Config.GetCertificate. If the files cannot be read, for example because the key is written
// later, it keeps the present certificate.
func (c *certificateFiles) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < c.every {
		return c.now, nil
	}
	c.looked = time.Now()
	state := c.stat()
	if state == c.state {
		return c.now, nil
	}
	c.state = state
	read, err := c.read()
	if err != nil {
		c.log.Error("cannot read the changed certificate; keeping the previous one", "error", err)
		return c.now, nil
	}
	c.now = read
	c.log.Info("reloaded the certificate", "file", c.cert)
	return c.now, nil
}
