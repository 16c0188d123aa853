package awstest

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"scrimp/internal/test/awstest/catalog"
)

// An order is the body of a request below /_test/; each path reads the fields that it needs.
type order struct {
	Fault
	Instance string   `json:"instance"`
	Type     string   `json:"type"`
	Zone     string   `json:"zone"`
	Region   string   `json:"region"`
	Spot     bool     `json:"spot"`
	N        int      `json:"n"`
	USD      string   `json:"usd"`
	Quota    string   `json:"quota"`
	For      string   `json:"for"` // a duration like 3s
	Codes    []string `json:"codes"`
}

// orders are the control commands: POST /_test/NAME with Authorization: Bearer TOKEN and an order.
var orders = map[string]func(*Server, order) (any, error){
	"fault":     func(s *Server, o order) (any, error) { return nil, s.Inject(o.Fault) },
	"clear":     func(s *Server, _ order) (any, error) { s.Clear(); return nil, nil },
	"late":      func(s *Server, o order) (any, error) { return nil, o.span(s.Late) },
	"skew":      func(s *Server, o order) (any, error) { return nil, o.span(s.Skew) },
	"broken":    func(s *Server, o order) (any, error) { s.BreakLaunch(o.Codes...); return nil, nil },
	"interrupt": func(s *Server, o order) (any, error) { return nil, s.Interrupt(o.Instance, o.Code) },
	"reclaim":   func(s *Server, o order) (any, error) { return nil, s.Reclaim(o.Instance) },
	"stop":      func(s *Server, o order) (any, error) { return nil, s.Stop(o.Instance) },
	"rebalance": func(s *Server, o order) (any, error) { return nil, s.Rebalance(o.Instance) },
	"kill":      func(s *Server, o order) (any, error) { return nil, s.Kill(o.Instance) },
	"impair":    func(s *Server, o order) (any, error) { return nil, s.Impair(o.Instance) },
	"shutdown":  func(s *Server, o order) (any, error) { return nil, s.Shutdown(o.Instance) },
	"terminate": func(s *Server, o order) (any, error) { return nil, s.Terminate(o.Instance) },
	"capacity": func(s *Server, o order) (any, error) {
		return nil, s.SetCapacity(catalog.Pool{Type: o.Type, Zone: o.Zone, Spot: o.Spot}, o.N)
	},
	"refuse": func(s *Server, o order) (any, error) {
		return nil, s.Refuse(catalog.Pool{Type: o.Type, Zone: o.Zone, Spot: o.Spot}, o.Code, o.Count)
	},
	"price":   func(s *Server, o order) (any, error) { return nil, s.SetSpotPrice(o.Type, o.Zone, o.USD) },
	"quota":   func(s *Server, o order) (any, error) { s.SetQuota(o.Quota, o.N); return nil, nil },
	"address": func(s *Server, o order) (any, error) { return s.AddAddress(o.Region, nil), nil },
	"left":    func(s *Server, _ order) (any, error) { return append([]Thing{}, s.Left()...), nil },
	"bill": func(s *Server, _ order) (any, error) {
		list := []object{}
		for _, l := range s.Bill() {
			list = append(list, object{"kind": l.Kind, "id": l.ID, "instance": l.Instance, "type": l.Type, "zone": l.Zone,
				"spot": l.Spot, "from": l.From, "to": l.To, "open": l.Open, "seconds": l.Seconds, "free": l.Free,
				"usd": l.USD.RatString(), "tags": l.Tags})
		}
		return list, nil
	},
	"instances": func(s *Server, _ order) (any, error) { return s.list(), nil },
	"calls": func(s *Server, _ order) (any, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		out := object{}
		for k, n := range s.calls {
			out[k] = n
		}
		return out, nil
	},
}

func (o order) span(do func(time.Duration)) error {
	d, err := time.ParseDuration(o.For)
	if err == nil {
		do(d)
	}
	return err
}

func (s *Server) list() []object {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(s.now())
	list := []object{}
	for _, i := range s.instances {
		list = append(list, object{"id": i.id, "type": i.typ.Name, "zone": i.zone.Name, "spot": i.request != nil,
			"state": stateNames[i.state], "reason": i.reasonCode,
			"ran": !i.running.IsZero(), "address": i.address.String(), "tags": i.tags,
			"launched": i.launched})
	}
	return list
}

func (s *Server) control(w http.ResponseWriter, r *http.Request) {
	given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if subtle.ConstantTimeCompare([]byte(given), []byte(s.Token)) != 1 {
		http.Error(w, "give the token of this cloud: Authorization: Bearer TOKEN", http.StatusUnauthorized)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/_test/")
	do, known := orders[name]
	if !known {
		var names []string
		for k := range orders {
			names = append(names, k)
		}
		slices.Sort(names)
		http.Error(w, fmt.Sprintf("%q is none of %s", name, strings.Join(names, ", ")), http.StatusNotFound)
		return
	}
	var o order
	if r.ContentLength != 0 {
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16))
		d.DisallowUnknownFields()
		if err := d.Decode(&o); err != nil {
			http.Error(w, "read the order: "+err.Error(), http.StatusBadRequest)
			return
		}
	}
	out, err := do(s, o)
	if err != nil {
		http.Error(w, name+": "+err.Error(), http.StatusConflict)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // the client may have left
}
