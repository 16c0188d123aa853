//go:build !local

// Package setting reads and validates the section with of an AWS engine in engines.yaml.
package setting

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"scrimp/internal/content/blob/scopedcreds"
	"scrimp/internal/engine"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/lib/weburl"
	"scrimp/internal/market"
)

// With is the section with of an AWS engine.
type With struct {
	Region   string `yaml:"region"`
	Profile  string `yaml:"profile,omitempty"`  // of the shared configuration; empty: the usual credential chain
	Endpoint string `yaml:"endpoint,omitempty"` // of an EC2-compatible service; empty: AWS
	// Types are the instance types that may be rented, also as patterns: g5.*
	Types    []string          `yaml:"types"`
	Capacity []market.Capacity `yaml:"capacity,omitempty"` // empty: spot and on-demand
	Fleets   []Fleet           `yaml:"fleets,omitempty"`
	// Reservations of capacity cost the same used or unused; if empty, machines are only rented.
	Reservations Reservations `yaml:"reservations,omitempty"`
	// Subnets are where machines start; if empty, the default subnet of each zone.
	Subnets       []string `yaml:"subnets,omitempty"`
	SecurityGroup string   `yaml:"security_group,omitempty"` // empty: scrimp creates one without inbound rules
	// Image is an AMI; empty means the newest AWS Deep Learning Base AMI for the type's architecture.
	Image     string `yaml:"image,omitempty"`
	Disk      string `yaml:"disk,omitempty"`      // of a machine; empty: 100GiB
	DiskRate  string `yaml:"disk_rate,omitempty"` // per GiB and month; empty: the price list's price of gp3
	PublicIP  *bool  `yaml:"public_ip,omitempty"` // whether machines get a public address; nil: as the subnet says
	Placement string `yaml:"placement,omitempty"` // of gangs: cluster, spread or none; empty: none
	CA        string `yaml:"ca,omitempty"`        // certificates that agents trust for the server; empty: the image's
	// Store is a bucket, or a prefix of one, for which jobs on any engine get credentials through JobRole.
	Store   string `yaml:"store,omitempty"`
	JobRole string `yaml:"job_role,omitempty"` // ARN of the role that may use the store
	// Bills is where AWS exports the account's bill; nil: scrimp fetches none.
	Bills *Bills `yaml:"bills,omitempty"`
	// Certificate verifies identity documents if the endpoint is not AWS's.
	Certificate string `yaml:"certificate,omitempty"`

	// The fields below are parsed from the texts above; engines.yaml does not contain them.

	DiskSize   size.Bytes         `yaml:"-"`
	DiskPrice  money.Rate         `yaml:"-"` // per GiB and month
	DiskPriced bool               `yaml:"-"` // DiskRate is given
	CAText     string             `yaml:"-"` // content of CA
	Bucket     *scopedcreds.Store `yaml:"-"` // the parsed Store; nil: none
	Export     *engine.Export     `yaml:"-"` // the parsed Bills; nil: none
	SignedBy   []byte             `yaml:"-"` // content of Certificate
	Backoff    time.Duration      `yaml:"-"` // the SDK's longest pause
}

const withHas = "an AWS engine has region, types, capacity, fleets, reservations, profile, endpoint, subnets, " +
	"security_group, image, disk, disk_rate, public_ip, placement, ca, store, job_role, " +
	"bills (bucket, prefix, region, endpoint and every) and certificate"

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

// Read parses and validates the settings.
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
	if err := cmp.Or(w.types(), w.capacities()); err != nil {
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

// capacities validates the capacities. Reserved capacity needs an entry under reservations; here reserved only means
// that nothing else is rented.
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

// types validates the names and patterns of instance types.
func (w *With) types() error {
	if len(w.Types) == 0 {
		return errors.New("with: no types: write the instance types that may be rented, also as patterns: types: [g5.*, " +
			"c7i.xlarge]")
	}
	for _, t := range w.Types {
		if _, err := path.Match(t, "a.b"); err != nil || !typeName.MatchString(t) {
			return fmt.Errorf("with: types has %q: write an instance type, such as g5.xlarge, or a pattern, such as g5.*", t)
		}
	}
	return nil
}

// measures parses values with units, and reads the files.
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
		if _, ok := weburl.Parse(w.Endpoint); !ok {
			return fmt.Errorf(
				"with: endpoint is %q: write a URL, such as http://127.0.0.1:4566, or leave it out for AWS",
				w.Endpoint,
			)
		}
	}
	if err := cmp.Or(w.lends(), w.exports()); err != nil {
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
				"with: certificate: %w: write a PEM file with the certificate of the endpoint's signatures",
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

// Patterns returns the types in the form of EC2's filters.
func (w *With) Patterns() []string { return slices.Clone(w.Types) }

// Public reports whether machines get a public address; subnet says whether their subnet gives one.
func (w *With) Public(subnet bool) bool {
	if w.PublicIP != nil {
		return *w.PublicIP
	}
	return subnet
}

// IsPattern reports whether a type is a pattern.
func IsPattern(t string) bool { return strings.ContainsAny(t, "*?") }

// maxBackoff bounds the SDK's pause before a retry.
const maxBackoff = 5 * time.Second

// HasFamily reports whether a type of a family may be rented.
func (w *With) HasFamily(family string) bool {
	return slices.ContainsFunc(w.Types, func(t string) bool {
		of, _, _ := strings.Cut(t, ".")
		return of == family || IsPattern(of)
	})
}
