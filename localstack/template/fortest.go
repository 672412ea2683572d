package template

import (
	"crypto/rand"
	"testing"
)

// TablesForTest creates the tables of a template file, for one test alone, and
// returns their names by their logical IDs. It fails the test if it can't.
func TablesForTest(t testing.TB, api TableAPI, path string) map[string]string {
	t.Helper()
	deployed, err := Read(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for i := range deployed.Tables {
		table := &deployed.Tables[i]
		table.Name = "test-" + table.LogicalID + "-" + rand.Text()
		names[table.LogicalID] = table.Name
	}
	if err := CreateTables(t.Context(), api, deployed.Tables); err != nil {
		t.Fatal(err)
	}
	return names
}
