// config.cpp -- the settings table, read only.
#include "state.h"

namespace tack::python {

void bind_config(nb::module_& m) {
  m.def(
      "config_get", [](const std::string& name) { return state().runtime->config().get(name); }, nb::arg("name"),
      "The value of a setting (\"TACK_CPU_THREADS\") as text. ValueError for an unknown name.");
  m.def(
      "config_table",
      [] {
        nb::list rows;
        for (const Setting& row : Config::table()) {
          const auto text = [](std::string_view v) { return nb::str(v.data(), v.size()); };
          rows.append(nb::make_tuple(text(row.name), text(row.type), text(row.default_value), text(row.help)));
        }
        return rows;
      },
      nb::sig("def config_table() -> list[tuple[str, str, str, str]]"), "Every setting: its environment variable, type, default and help.");
}

}  // namespace tack::python
