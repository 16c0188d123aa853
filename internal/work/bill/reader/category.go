package reader

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"scrimp/internal/lib/decimal"
	"scrimp/internal/work/bill"
)

// signs lists words that tell the category, in order of precedence: a virtual machine's disk is storage, and what it
// sends is transfer.
var signs = []struct {
	bill.Category
	words []string
}{
	{bill.Support, []string{"support"}},
	{bill.Address, []string{"publicipv4", "elasticip", "ip address", "idleaddress", "inuseaddress", "static ip",
		"public ip", "external ip", "reserved ip"}},
	{bill.Transfer, []string{"datatransfer", "data transfer", "-bytes", "bandwidth", "egress", "ingress", "natgateway",
		"nat gateway", "network", "load balanc", "loadbalanc", "vpn", "interconnect", "cloudfront"}},
	{bill.Storage, []string{"ebs:", "volume", "snapshot", "storage", "disk", "pd capacity", "bucket", "timedstorage",
		"amazons3", "blob", "backup"}},
	{bill.Compute, []string{"boxusage", "spotusage", "dedicatedusage", "hostusage", "compute", "virtual machine",
		"instance", "gpu", "tpu", "vcpu", "core running", "ram running", "amazonec2", "sagemaker", "kubernetes",
		"machine learning", "container", "ocpu"}},
}

// classify returns the category of the first text that tells one.
func classify(texts ...string) bill.Category {
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
	return bill.Other
}

// used returns the category of a usage line.
func (c *row) used(l *bill.Line) bill.Category {
	if strings.Contains(strings.ToLower(l.Service), "support") {
		return bill.Support
	}
	return classify(c.text(fieldUsage), l.Description, c.text(fieldGroup), l.Service)
}

var zero = bill.Number{Known: true}

// awsLine uses the type of the line. Usage covered by a commitment is billed at its on-demand price and deducted again
// by a negation; its effective cost has its own column.
func awsLine(c *row, l *bill.Line) []bill.Line {
	kind := c.text(fieldType)
	planned := l.Effective // of a savings plan
	l.Effective, l.Category = bill.Number{Value: l.Billed, Known: true}, c.used(l)
	switch kind {
	case "Tax":
		l.Category = bill.Tax
	case "Refund":
		l.Category = bill.Refund
	case "Credit", "Discount", "EdpDiscount", "BundledDiscount", "PrivateRateDiscount", "RiVolumeDiscount",
		"SppDiscount", "DistributorDiscount":
		l.Category = bill.Credit
	case "SavingsPlanCoveredUsage":
		l.Effective = planned
	case "DiscountedUsage":
		l.Effective = c.number(fieldReserved, bill.Most)
	case "SavingsPlanNegation", "SavingsPlanUpfrontFee":
		l.Category, l.Effective = bill.Commitment, zero
	case "SavingsPlanRecurringFee":
		l.Category = bill.Commitment
		l.Effective = difference(c.number(fieldUnusedPlan, bill.Most), c.number(fieldUsedPlan, bill.Most))
	case "RIFee":
		l.Category = bill.Commitment
		unused := c.number(fieldUnusedFee, bill.Most)
		unused.Value = unused.Value.Neg()
		l.Effective = difference(c.number(fieldUnusedUpfront, bill.Most), unused)
	case "Fee":
		if c.text(fieldCommitment) != "" {
			l.Category, l.Effective = bill.Commitment, zero
		}
	}
	return nil
}

// difference returns a - b if both are known.
func difference(a, b bill.Number) bill.Number {
	if !a.Known || !b.Known {
		return bill.Number{}
	}
	return bill.Number{Value: a.Value.Sub(b.Value), Known: true}
}

func azureLine(c *row, l *bill.Line) []bill.Line {
	l.Category = c.used(l)
	switch kind := strings.ToLower(strings.ReplaceAll(c.text(fieldType), " ", "")); {
	case kind == "tax", kind == "steuer", kind == "taxe":
		l.Category = bill.Tax
	case kind == "refund", kind == "erstattung", kind == "remboursement":
		l.Category = bill.Refund
	case kind == "credit", kind == "gutschrift", kind == "crédit":
		l.Category = bill.Credit
	case strings.HasPrefix(kind, "unused"):
		l.Category = bill.Commitment
	case kind == "purchase" && (c.text(fieldCommitment) != "" ||
		strings.Contains(strings.ToLower(c.text(fieldPricing)), "reserv") ||
		strings.Contains(strings.ToLower(c.text(fieldPricing)), "savings")):
		l.Category = bill.Commitment
	case strings.Contains(kind, "rounding"):
		l.Category = bill.Other
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

// invoiceMonth sets the billing period from the month of Google's invoice, which may be the one after that of a late
// charge: a charge must not replace the bill of the month before.
func (c *row) invoiceMonth(l *bill.Line) {
	if l.Invoice == "" {
		return
	}
	at, err := time.Parse("200601", strings.Replace(l.Invoice, "-", "", 1))
	if err != nil || at.Year() < 2000 || at.Year() >= 2200 {
		c.fail(fieldInvoice, fmt.Errorf("%.40q is no month such as 202610", l.Invoice))
		return
	}
	l.PeriodStart, l.PeriodEnd = at, at.AddDate(0, 1, 0)
}

// gcpLine adds a line for each credit to that of the usage. Google bills the sum.
func gcpLine(c *row, l *bill.Line) []bill.Line {
	c.invoiceMonth(l)
	l.Category = c.used(l)
	switch c.text(fieldType) {
	case "tax":
		l.Category = bill.Tax
	case "adjustment":
		if l.Correction = true; l.Billed.Sign() < 0 {
			l.Category = bill.Refund
		}
	case "rounding_error":
		l.Category = bill.Other
	default:
		if strings.HasPrefix(l.Description, "Commitment") {
			l.Category = bill.Commitment
		}
	}
	list, err := creditsOf(c.text(fieldCredits))
	if err != nil {
		c.fail(fieldCredits, err)
		return nil
	}
	var more []bill.Line
	for _, one := range list {
		if one.amount.Cmp(bill.Most) > 0 || one.amount.Cmp(bill.Most.Neg()) < 0 {
			c.fail(fieldCredits, fmt.Errorf("an amount is beyond %s", bill.Most))
			return nil
		}
		part := *l
		part.Billed, part.Effective, part.ListCost = one.amount, bill.Number{Value: one.amount, Known: true}, zero
		part.Quantity, part.UnitPrice, part.Description, part.Category = bill.Number{}, bill.Number{}, one.name, bill.Credit
		if strings.HasPrefix(one.kind, "COMMITTED_USAGE") {
			part.Category = bill.Commitment
		}
		more = append(more, part)
	}
	return more
}

func ociLine(c *row, l *bill.Line) []bill.Line {
	l.Category = c.used(l)
	return nil
}

// focusLine uses ChargeCategory, and then the service's category.
func focusLine(c *row, l *bill.Line) []bill.Line {
	kind := strings.ToLower(c.text(fieldType))
	group := strings.ToLower(c.text(fieldGroup))
	switch {
	case kind == "tax":
		l.Category = bill.Tax
	case kind == "credit":
		l.Category = bill.Credit
	case kind == "adjustment" && l.Billed.Sign() < 0:
		l.Category = bill.Refund
	case kind == "purchase" && c.text(fieldCommitment) != "",
		strings.EqualFold(c.text(fieldPricing), "unused"):
		l.Category = bill.Commitment
	case kind == "adjustment":
		l.Category = bill.Other
	default:
		l.Category = focusUsed(c, l, group)
	}
	return nil
}

func focusUsed(c *row, l *bill.Line, group string) bill.Category {
	finer := c.used(l)
	switch {
	case finer == bill.Address || finer == bill.Support:
		return finer
	case group == "storage":
		return bill.Storage
	case group == "networking":
		return bill.Transfer
	case group == "compute" || group == "ai and machine learning":
		if finer == bill.Storage || finer == bill.Transfer { // AWS: a disk and its transfers belong to EC2
			return finer
		}
		return bill.Compute
	case group == "":
		return finer
	}
	return bill.Other
}
