//go:build !local

package ec2decode

import (
	"encoding/json"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/pricing"
)

// Product holds the fields of a price list product that are read. Source: docs.aws.amazon.com, AWS Price List API
// user guide, "Reading the service price list file"; GetProducts returns products in the same form.
type Product struct {
	Machine string // instance type; empty: the product is something else
	Prices  []Price
}

// Price is an on-demand price of a product.
type Price struct {
	Unit  string // Hrs or GB-Mo
	Begin string // of the tier; empty or 0: the first tier
	USD   string // empty: the price is in another currency
}

// products decodes a page of the price list.
func products(body []byte) any {
	s := &jsonScanner{text: string(body)}
	out := &pricing.GetProductsOutput{}
	s.object(func(key string) {
		switch {
		case key == "PriceList" && out.PriceList == nil:
			out.PriceList = []string{}
			s.list(func() { out.PriceList = append(out.PriceList, s.str()) })
		case key == "NextToken" && out.NextToken == nil:
			token := s.str()
			out.NextToken = &token
		case key == "PriceList" || key == "NextToken":
			s.odd = true // repeated
		default:
			s.skip()
		}
	})
	if !s.whole() {
		return nil
	}
	return out
}

// ProductOf decodes a product of the price list; false means that it is not one.
func ProductOf(text string) (Product, bool) {
	if p, ok := leanProduct(text); ok {
		return p, true
	}
	return plainProduct(text)
}

// leanProduct is ProductOf for the usual form; false means that the form is unusual.
func leanProduct(text string) (Product, bool) {
	s := &jsonScanner{text: text}
	p := Product{}
	s.object(func(key string) {
		switch {
		case strings.EqualFold(key, "product"):
			s.at("attributes", func() {
				s.at("instanceType", func() { p.Machine = strings.Clone(s.str()) }) // cloned, so that the whole text can be freed
			})
		case strings.EqualFold(key, "terms"):
			s.at("OnDemand", func() {
				s.object(func(string) {
					s.at("priceDimensions", func() {
						s.object(func(string) { p.Prices = append(p.Prices, s.price()) })
					})
				})
			})
		default:
			s.skip()
		}
	})
	return p, s.whole()
}

// at calls each for the values of that key, and skips the others.
func (s *jsonScanner) at(wanted string, each func()) {
	s.object(func(key string) {
		if strings.EqualFold(key, wanted) {
			each()
		} else {
			s.skip()
		}
	})
}

func (s *jsonScanner) price() (p Price) {
	s.object(func(key string) {
		switch {
		case strings.EqualFold(key, "unit"):
			p.Unit = s.str()
		case strings.EqualFold(key, "beginRange"):
			p.Begin = s.str()
		case strings.EqualFold(key, "pricePerUnit"):
			s.object(func(currency string) {
				if currency == "USD" {
					p.USD = s.str()
				} else {
					s.skip()
				}
			})
		default:
			s.skip()
		}
	})
	return p
}

// plainProduct is ProductOf by encoding/json, which takes ten times as long.
func plainProduct(text string) (Product, bool) {
	var all struct {
		Product struct {
			Attributes struct {
				Machine string `json:"instanceType"`
			} `json:"attributes"`
		} `json:"product"`
		Terms struct {
			OnDemand map[string]struct {
				PriceDimensions map[string]struct {
					Unit         string            `json:"unit"`
					BeginRange   string            `json:"beginRange"`
					PricePerUnit map[string]string `json:"pricePerUnit"`
				} `json:"priceDimensions"`
			} `json:"OnDemand"`
		} `json:"terms"`
	}
	err := json.Unmarshal([]byte(text), &all)
	p := Product{Machine: all.Product.Attributes.Machine}
	for _, t := range all.Terms.OnDemand {
		for _, d := range t.PriceDimensions {
			p.Prices = append(p.Prices, Price{d.Unit, d.BeginRange, d.PricePerUnit["USD"]})
		}
	}
	return p, err == nil
}
