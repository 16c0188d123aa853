// Awscloud serves a simulated cloud that answers as EC2 does, for demonstrations and fault injection on one machine:
//
//	go run ./hack/awscloud --listen 127.0.0.1:8099 --dir /tmp/cloud --machines
//
// It prints its address and keys as shell assignments, and runs until it is interrupted; then all its instances end.
// POST /_test/NAME injects faults: see orders in internal/test/awstest.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/big"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"scrimp/internal/test/awstest"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "awscloud:", err)
		os.Exit(1)
	}
}

func run() error {
	listen := flag.String("listen", "127.0.0.1:0", "address to serve at")
	dir := flag.String("dir", "", "folder for what instances write (needed with --machines)")
	machines := flag.Bool("machines", false, "instances are processes of this machine that run their user data (needs "+
		"root)")
	scale := flag.Int("scale", 1, "how much faster than EC2 spans pass: start, shutdown, the two minutes' notice")
	speed := flag.Int("speed", 1, "how much faster than real time the cloud's clock runs, its bill included")
	net := flag.String("net", "172.31.0.0/16", "network of the instances")
	key := flag.String("key", "", "access key; made up unless given, with --secret")
	secret := flag.String("secret", "", "its secret")
	token := flag.String("token", "", "token of the control path; made up unless given")
	pending := flag.Duration("pending", 8*time.Second, "how long an instance takes from its launch to running, where its "+
		"bill begins, before --scale")
	sum := flag.String("sum", "", "print a bill as a table and its sum instead: a `file` with what POST "+
		"/_test/bill answered")
	flag.Parse()
	if *sum != "" {
		return table(*sum)
	}
	if flag.NArg() > 0 {
		return fmt.Errorf("argument %q is not known: there are flags only, see --help", flag.Arg(0))
	}
	if *scale < 1 || *speed < 1 {
		return fmt.Errorf("--scale and --speed are 1 or more")
	}
	by := time.Duration(*scale)
	o := awstest.Options{Listen: *listen, Key: *key, Secret: *secret, Token: *token, Net: *net, Spans: awstest.Spans{
		Pending: *pending / by, Ending: 30 * time.Second / by, Boot: 20 * time.Second / by,
		Rebalance: 60 * time.Second / by, Notice: 2 * time.Minute / by}}
	begun := time.Now()
	o.Now = func() time.Time { return begun.Add(time.Since(begun) * time.Duration(*speed)) }
	if *machines {
		if *dir == "" {
			return fmt.Errorf("--machines needs a folder: --dir")
		}
		path, err := filepath.Abs(*dir)
		if err != nil {
			return err
		}
		o.Run = &awstest.Run{Dir: path}
	}
	s, err := awstest.New(o)
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Printf("export AWS_ENDPOINT_URL=%s AWS_ACCESS_KEY_ID=%s AWS_SECRET_ACCESS_KEY=%s AWS_REGION=us-east-1\n", s.URL,
		s.Key,
		s.Secret)
	fmt.Printf("export AWSCLOUD_TOKEN=%s AWSCLOUD_HOST=%s\n", s.Token, s.Host)
	if *dir != "" {
		path := filepath.Join(*dir, "certificate.pem")
		if err := os.WriteFile(path, s.Certificate(), 0o644); err != nil { // it is public
			return fmt.Errorf("write the certificate: %w", err)
		}
		fmt.Printf("export AWSCLOUD_CERTIFICATE=%s\n", path)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	<-ctx.Done()
	return nil
}

// table prints an exact bill and its sum.
func table(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the bill: %w", err)
	}
	var lines []struct{ Kind, Instance, Type, Zone, Free, USD string }
	if err := json.Unmarshal(text, &lines); err != nil {
		return fmt.Errorf("read the bill %s: %w", path, err)
	}
	all := new(big.Rat)
	for _, l := range lines {
		cost, ok := new(big.Rat).SetString(l.USD)
		if !ok {
			return fmt.Errorf("read the bill %s: %q is not an amount of dollars", path, l.USD)
		}
		all.Add(all, cost)
		fmt.Printf("%-20s %-9s %-11s %-11s $%s  %s\n", l.Instance, l.Kind, l.Type, l.Zone, cost.FloatString(6), l.Free)
	}
	fmt.Printf("%-20s %-9s %-11s %-11s $%s\n", "sum", "", "", "", all.FloatString(6))
	return nil
}
