package main

import (
	"crypto/rand"
	"testing"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/template"
)

func TestPayment_OnDynamoDB(t *testing.T) {
	client := ddblocal.ForTest(t).Client()
	sam, err := template.Read("template.yaml", template.Options{StackName: rand.Text()})
	if err != nil {
		t.Fatal(err)
	}
	if err := template.CreateTables(t.Context(), client, sam.Tables); err != nil {
		t.Fatal(err)
	}

	store := dynamostore.New(client, sam.Tables[0].Name)
	if err := store.CheckTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	order := idemtest.Request{Path: "/payments", Key: "order-1", Body: `{"amount":100}`}
	idemtest.Twice(t, newHandler(store), order.APIGatewayV2())
}
