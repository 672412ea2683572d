package main

import (
	"context"
	"fmt"
	"slices"
)

// audit compares the tables with the answers that clients received.
func (d *demo) audit(ctx context.Context) error {
	payments, err := d.tables.allPayments(ctx)
	if err != nil {
		return err
	}
	var made []string
	refunds, refunded := 0, int64(0)
	for _, p := range payments {
		if p.PaymentID != "" {
			refunds++
			refunded += p.Amount
			continue
		}
		made = append(made, p.ID)
	}
	slices.Sort(made)
	slices.Sort(d.owed)
	d.out.check(slices.Equal(made, d.owed), fmt.Sprintf("%d payments in the table: the %d that clients were told of", len(d.owed), len(d.owed)),
		fmt.Sprintf("%d: %v, clients were told of %v", len(made), made, d.owed))
	d.out.check(refunds == 1 && refunded == 1000, "1 refund, of 1000", fmt.Sprintf("%d, of %d", refunds, refunded))
	if err := d.everyOne(ctx, d.owed); err != nil {
		return err
	}
	return d.expectMoney(ctx, payments)
}

// expectMoney checks that the money in accounts, payments and reserved transfers is the money
// that the accounts had at the beginning.
func (d *demo) expectMoney(ctx context.Context, payments []payment) error {
	money := int64(0)
	for _, p := range payments {
		if p.PaymentID == "" {
			money += p.Refundable // paid, and not refunded
		}
	}
	accounts, err := d.tables.allAccounts(ctx)
	if err != nil {
		return err
	}
	for _, a := range accounts {
		money += a.Balance
	}
	transfers, err := d.tables.allTransfers(ctx)
	if err != nil {
		return err
	}
	for _, t := range transfers {
		if t.Status == "reserved" {
			money += t.Amount
		}
	}
	d.out.check(money == d.opened, fmt.Sprintf("no cent was made or lost: accounts and payments have the %d of the start", d.opened), money)
	return nil
}
