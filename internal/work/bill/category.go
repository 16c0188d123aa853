package bill

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"scrimp/internal/lib/decimal"
)

// signs lists words that tell the category, in order of precedence: a virtual machine's disk is storage, and what it
// sends is transfer.
var signs = []struct {
	Category
	words []string
}{
	{Support, []string{"support"}},
	{Address, []string{"publicipv4", "elasticip", "ip address", "idleaddress", "inuseaddress", "static ip",
		"public ip", "external ip", "reserved ip"}},
	{Transfer, []string{"datatransfer", "data transfer", "-bytes", "bandwidth", "egress", "ingress", "natgateway",
		"nat gateway", "network", "load balanc", "loadbalanc", "vpn", "interconnect", "cloudfront"}},
	{Storage, []string{"ebs:", "volume", "snapshot", "storage", "disk", "pd capacity", "bucket", "timedstorage",
		"amazons3", "blob", "backup"}},
	{Compute, []string{"boxusage", "spotusage", "dedicatedusage", "hostusage", "compute", "virtual machine", "instance",
		"gpu", "tpu", "vcpu", "core running", "ram running", "amazonec2", "sagemaker", "kubernetes", "machine learning",
		"container", "ocpu"}},
}

// classify returns the category of the first text that tells one.
func classify(texts ...string) Category {
	for _, text := range texts {
		text = strings.ToLower(text)
		for _, s := range signs {
			for _, word := range s.words {
				if strings.Contains(text, word) {
					return s.Category
				}
			}
		}
	}
	return Other
}

// used returns the category of a usage line.
func (c *row) used(l *Line) Category {
	if strings.Contains(strings.ToLower(l.Service), "support") {
		return Support
	}
	return classify(c.text(fieldUsage), l.Description, c.text(fieldGroup), l.Service)
}

var zero = Number{Known: true}

// awsLine uses the type of the line. Usage covered by a commitment is billed at its on-demand price and deducted again
// by a negation; its effective cost has its own column.
func awsLine(c *row, l *Line) []Line {
	kind := c.text(fieldType)
	planned := l.Effective // of a savings plan
	l.Effective, l.Category = Number{l.Billed, true}, c.used(l)
	switch kind {
	case "Tax":
		l.Category = Tax
	case "Refund":
		l.Category = Refund
	case "Credit", "Discount", "EdpDiscount", "BundledDiscount", "PrivateRateDiscount", "RiVolumeDiscount",
		"SppDiscount", "DistributorDiscount":
		l.Category = Credit
	case "SavingsPlanCoveredUsage":
		l.Effective = planned
	case "DiscountedUsage":
		l.Effective = c.number(fieldReserved, most)
	case "SavingsPlanNegation", "SavingsPlanUpfrontFee":
		l.Category, l.Effective = Commitment, zero
	case "SavingsPlanRecurringFee":
		l.Category = Commitment
		l.Effective = difference(c.number(fieldUnusedPlan, most), c.number(fieldUsedPlan, most))
	case "RIFee":
		l.Category = Commitment
		unused := c.number(fieldUnusedFee, most)
		unused.Value = unused.Value.Neg()
		l.Effective = difference(c.number(fieldUnusedUpfront, most), unused)
	case "Fee":
		if c.text(fieldCommitment) != "" {
			l.Category, l.Effective = Commitment, zero
		}
	}
	return nil
}

// difference returns a - b if both are known.
func difference(a, b Number) Number {
	if !a.Known || !b.Known {
		return Number{}
	}
	return Number{a.Value.Sub(b.Value), true}
}

func azureLine(c *row, l *Line) []Line {
	l.Category = c.used(l)
	switch kind := strings.ToLower(strings.ReplaceAll(c.text(fieldType), " ", "")); {
	case kind == "tax":
		l.Category = Tax
	case kind == "refund":
		l.Category = Refund
	case kind == "credit":
		l.Category = Credit
	case strings.HasPrefix(kind, "unused"):
		l.Category = Commitment
	case kind == "purchase" && (c.text(fieldCommitment) != "" ||
		strings.Contains(strings.ToLower(c.text(fieldPricing)), "reserv") ||
		strings.Contains(strings.ToLower(c.text(fieldPricing)), "savings")):
		l.Category = Commitment
	case strings.Contains(kind, "rounding"):
		l.Category = Other
	}
	return nil
}

// credit is a deduction of Google from a line.
type credit struct {
	name, kind string
	amount     decimal.Decimal
}

var errCredits = errors.New("is not a list of credits with their amounts")

func creditsOf(text string) (list []credit, err error) {
	if text == "" {
		return nil, nil
	}
	var raw []struct {
		Name   string      `json:"name"`
		Type   string      `json:"type"`
		Full   string      `json:"full_name"`
		Amount json.Number `json:"amount"`
	}
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil, fmt.Errorf("%.40q %w", text, errCredits)
	}
	for _, one := range raw {
		amount, err := decimal.Parse(one.Amount.String())
		if err != nil {
			return nil, fmt.Errorf("%.40q %w", text, errCredits)
		}
		name := one.Name
		if one.Full != "" {
			name = one.Full
		}
		list = append(list, credit{name, one.Type, amount})
	}
	return list, nil
}

// gcpLine adds a line for each credit to that of the usage. Google bills the sum.
func gcpLine(c *row, l *Line) []Line {
	l.Category = c.used(l)
	switch c.text(fieldType) {
	case "tax":
		l.Category = Tax
	case "adjustment":
		if l.Correction = true; l.Billed.Sign() < 0 {
			l.Category = Refund
		}
	case "rounding_error":
		l.Category = Other
	default:
		if strings.HasPrefix(l.Description, "Commitment") {
			l.Category = Commitment
		}
	}
	list, err := creditsOf(c.text(fieldCredits))
	if err != nil {
		c.fail(fieldCredits, err)
		return nil
	}
	var more []Line
	for _, one := range list {
		if one.amount.Cmp(most) > 0 || one.amount.Cmp(most.Neg()) < 0 {
			c.fail(fieldCredits, fmt.Errorf("an amount is beyond %s", most))
			return nil
		}
		part := *l
		part.Billed, part.Effective, part.ListCost = one.amount, Number{one.amount, true}, zero
		part.Quantity, part.UnitPrice, part.Description, part.Category = Number{}, Number{}, one.name, Credit
		if strings.HasPrefix(one.kind, "COMMITTED_USAGE") {
			part.Category = Commitment
		}
		more = append(more, part)
	}
	return more
}

func ociLine(c *row, l *Line) []Line {
	l.Category = c.used(l)
	return nil
}

// focusLine uses ChargeCategory, and then the service's category.
func focusLine(c *row, l *Line) []Line {
	kind := strings.ToLower(c.text(fieldType))
	group := strings.ToLower(c.text(fieldGroup))
	switch {
	case kind == "tax":
		l.Category = Tax
	case kind == "credit":
		l.Category = Credit
	case kind == "adjustment" && l.Billed.Sign() < 0:
		l.Category = Refund
	case kind == "purchase" && c.text(fieldCommitment) != "",
		strings.EqualFold(c.text(fieldPricing), "unused"):
		l.Category = Commitment
	case kind == "adjustment":
		l.Category = Other
	default:
		l.Category = focusUsed(c, l, group)
	}
	return nil
}

func focusUsed(c *row, l *Line, group string) Category {
	finer := c.used(l)
	switch {
	case finer == Address || finer == Support:
		return finer
	case group == "storage":
		return Storage
	case group == "networking":
		return Transfer
	case group == "compute" || group == "ai and machine learning":
		if finer == Storage || finer == Transfer { // AWS: a disk and its transfers belong to EC2
			return finer
		}
		return Compute
	case group == "":
		return finer
	}
	return Other
}
