package api

import "scrimp/client"

// Costs and budgets:
//
//	GET /v1/costs?by=team&since=7d -> Costs
//	GET /v1/budgets                -> Budgets
//	PUT /v1/budgets      SetBudget -> 204
//	GET /v1/queue/shares           -> QueueShares
//	PUT /v1/queue/shares SetQueueShare -> 204
type (
	Costs         = client.Costs
	CostLine      = client.CostLine
	Budgets       = client.Budgets
	BudgetLine    = client.BudgetLine
	SetBudget     = client.SetBudget
	BudgetWarning = client.BudgetWarning
	QueueShares   = client.QueueShares
	QueueShare    = client.QueueShare
	SetQueueShare = client.SetQueueShare
)
