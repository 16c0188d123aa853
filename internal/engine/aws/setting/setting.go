//go:build !local

// Package setting reads and checks what an AWS engine has under with in engines.yaml.
package setting

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"scrimp/internal/content/blob/lent"
	"scrimp/internal/engine"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// With is what an AWS engine has under with.
type With struct {
	Region   string `yaml:"region"`
	Profile  string `yaml:"profile,omitempty"`  // of the shared configuration; "": the usual chain of credentials
	Endpoint string `yaml:"endpoint,omitempty"` // of an EC2-compatible service; "": AWS'
	// Types are instance types that may be rented, also as patterns: g5.*
	Types    []string          `yaml:"types"`
	Capacity []market.Capacity `yaml:"capacity,omitempty"` // none: spot and on-demand
	Fleets   []Fleet           `yaml:"fleets,omitempty"`
	// Reservations are of capacity, which costs whether it is used or not; none: machines are only rented.
	Reservations Reservations `yaml:"reservations,omitempty"`
	// Subnets are where machines begin; none: the default one of each zone.
	Subnets       []string `yaml:"subnets,omitempty"`
	SecurityGroup string   `yaml:"security_group,omitempty"` // "": one without inbound rules is made
	// Image is an AMI; "": the newest Deep Learning Base AMI of AWS' for the type's architecture.
	Image     string `yaml:"image,omitempty"`
	Disk      string `yaml:"disk,omitempty"`      // of a machine; "": 100GiB
	DiskRate  string `yaml:"disk_rate,omitempty"` // of a GiB and month; "": what the price list says of gp3
	PublicIP  *bool  `yaml:"public_ip,omitempty"` // whether machines get a public address; nil: as the subnet has it
	Placement string `yaml:"placement,omitempty"` // of gangs: cluster, spread or none; "": none
	CA        string `yaml:"ca,omitempty"`        // file of certificates that agents trust for the server; "": the image's
	// Store is a bucket, or a prefix of it, for which jobs get credentials by JobRole on whatever engine they run.
	Store   string `yaml:"store,omitempty"`
	JobRole string `yaml:"job_role,omitempty"` // ARN of the role that may use the store
	// Certificate signs identity documents where the endpoint is not AWS'.
	Certificate string `yaml:"certificate,omitempty"`

	// What follows is read of the texts above; engines.yaml has none of it.

	DiskSize   size.Bytes    `yaml:"-"`
	DiskPrice  money.Rate    `yaml:"-"` // of a GiB and month
	DiskPriced bool          `yaml:"-"` // DiskRate is written
	CAText     string        `yaml:"-"` // content of CA
	Bucket     *lent.Store   `yaml:"-"` // of Store; nil: none is declared
	SignedBy   []byte        `yaml:"-"` // content of Certificate
	Backoff    time.Duration `yaml:"-"` // of the SDK, at most
}

const withHas = "an AWS engine has region, types, capacity, fleets, reservations, profile, endpoint, subnets, " +
	"security_group, image, disk, disk_rate, public_ip, placement, ca, store, job_role and certificate"

var (
	regionName = regexp.MustCompile(`^[a-z]{2,3}(-[a-z]+)+-[0-9]+$`)
	typeName   = regexp.MustCompile(`^[a-z0-9*?-]+\.[a-z0-9*?-]+$`)
	idOf       = map[string]*regexp.Regexp{}
)

func init() {
	for _, kind := range []string{"subnet", "sg", "ami"} {
		idOf[kind] = regexp.MustCompile(`^` + kind + `-[0-9a-z]+$`)
	}
}

// Read reads and checks what is set.
func Read(s *engine.Setting) (w With, err error) {
	if err := s.With.Into(&w, withHas); err != nil {
		return w, err
	}
	if len(w.Capacity) == 0 {
		w.Capacity = []market.Capacity{market.Spot, market.OnDemand}
	}
	w.Backoff = maxBackoff
	w.Disk = cmp.Or(w.Disk, "100GiB")
	w.Placement = cmp.Or(w.Placement, "none")
	switch {
	case !regionName.MatchString(w.Region):
		return w, fmt.Errorf("with: region is %q: write one of AWS', such as us-east-1", w.Region)
	case len(w.Types) == 0:
		return w, errors.New(
			"with: no types: write the instance types that may be rented, also as patterns: types: [g5.*, " +
				"c7i.xlarge]",
		)
	case w.SecurityGroup != "" && !idOf["sg"].MatchString(w.SecurityGroup):
		return w, fmt.Errorf("with: security_group is %q: write its id, such as sg-0a1b2c3d", w.SecurityGroup)
	case w.Image != "" && !idOf["ami"].MatchString(w.Image):
		return w, fmt.Errorf(
			"with: image is %q: write the id of an AMI of the region, such as ami-0a1b2c3d; a job's own "+
				"container image is not run on AWS' machines",
			w.Image,
		)
	case !slices.Contains([]string{"none", "cluster", "spread"}, w.Placement):
		return w, fmt.Errorf("with: placement is %q: write cluster, spread or none", w.Placement)
	}
	for _, t := range w.Types {
		if _, err := path.Match(t, "a.b"); err != nil || !typeName.MatchString(t) {
			return w, fmt.Errorf(
				"with: types has %q: write an instance type, such as g5.xlarge, or a pattern, such as g5.*",
				t,
			)
		}
	}
	if err := w.capacities(); err != nil {
		return w, err
	}
	for _, id := range w.Subnets {
		if !idOf["subnet"].MatchString(id) {
			return w, fmt.Errorf("with: subnets has %q: write ids, such as subnet-0a1b2c3d", id)
		}
	}
	if err := cmp.Or(w.fleets(), w.holds()); err != nil {
		return w, err
	}
	err = w.measures()
	return w, err
}

// capacities checks which are wanted. What is reserved is named under reservations: here reserved means nothing else.
func (w *With) capacities() error {
	for _, c := range w.Capacity {
		switch {
		case c == market.Reserved && len(w.Reservations) == 0:
			return errors.New("with: capacity has reserved, and there are no reservations: write their ids under " +
				"reservations, or all")
		case c != market.Spot && c != market.OnDemand && c != market.Reserved:
			return fmt.Errorf("with: capacity has %q: write spot, on-demand or both; reserved alone, for reservations and "+
				"nothing else", c)
		}
	}
	w.Capacity = slices.DeleteFunc(w.Capacity, func(c market.Capacity) bool { return c == market.Reserved })
	return nil
}

// measures reads what is written with units, and the files.
func (w *With) measures() (err error) {
	if w.DiskSize, err = size.Parse(w.Disk); err != nil || w.DiskSize < 8*size.GiB {
		return fmt.Errorf("with: disk is %q: write a size from 8GiB, such as 100GiB", w.Disk)
	}
	if w.DiskRate != "" {
		if w.DiskPrice, err = engine.ParseRate(w.DiskRate); err != nil || w.DiskPrice < 0 {
			return fmt.Errorf("with: disk_rate is %q: write the dollars of a GiB and month, such as 0.08", w.DiskRate)
		}
		w.DiskPriced = true
	}
	if w.Endpoint != "" {
		if u, err := url.Parse(w.Endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf(
				"with: endpoint is %q: write a URL, such as http://127.0.0.1:4566, or leave it out for AWS",
				w.Endpoint,
			)
		}
	}
	if err := w.lends(); err != nil {
		return err
	}
	if w.CA != "" {
		text, err := os.ReadFile(w.CA)
		if err != nil {
			return fmt.Errorf("with: ca: %w: write a file of certificates in PEM", err)
		}
		w.CAText = string(text)
	}
	if w.Certificate != "" {
		if w.SignedBy, err = os.ReadFile(w.Certificate); err != nil {
			return fmt.Errorf(
				"with: certificate: %w: write a file with the certificate in PEM by which the endpoint signs",
				err,
			)
		}
	}
	return nil
}

// Wants reports whether machines of a type may be rented.
func (w *With) Wants(kind string) bool {
	return slices.ContainsFunc(w.Types, func(p string) bool { ok, _ := path.Match(p, kind); return ok })
}

// Patterns are the types as EC2's filters take them.
func (w *With) Patterns() []string { return slices.Clone(w.Types) }

// Public reports whether machines get a public address in a subnet that gives one or not.
func (w *With) Public(subnet bool) bool {
	if w.PublicIP != nil {
		return *w.PublicIP
	}
	return subnet
}

// IsPattern reports whether a type stands for several.
func IsPattern(t string) bool { return strings.ContainsAny(t, "*?") }

// maxBackoff is how long the SDK waits at most before it asks again.
const maxBackoff = 5 * time.Second

// HasFamily reports whether a type of a family may be rented.
func (w *With) HasFamily(family string) bool {
	return slices.ContainsFunc(w.Types, func(t string) bool {
		of, _, _ := strings.Cut(t, ".")
		return of == family || IsPattern(of)
	})
}
