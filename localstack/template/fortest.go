package template

import (
	"crypto/rand"
	"testing"
)

// TablesForTest creates the tables of a template file under names of their own, for
// one test alone, and returns those names by the tables' logical IDs. optFns may set
// [Options]: values of the template's parameters, say. It fails the test if it can't.
// It reads only the tables: a parameter that no table uses needs no value.
func TablesForTest(t testing.TB, api TableAPI, path string, optFns ...func(*Options)) map[string]string {
	t.Helper()
	var options Options
	for _, fn := range optFns {
		fn(&options)
	}
	options.tablesOnly = true
	deployed, err := Read(path, options)
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
