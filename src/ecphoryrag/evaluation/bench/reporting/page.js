"use strict";
for (const part of document.querySelectorAll(".browser")) {
  const form = part.querySelector(".filter");
  const questions = Array.from(part.querySelectorAll(".q"));
  const count = form.querySelector("output");
  const fits = (results, method, wanted) => {
    if (method === "" || wanted === "") return true;
    const result = results[Number(method)];
    return wanted === "right" ? result === "2" : result !== "2" && result !== "-";
  };
  const filter = () => {
    const value = (name) => form.querySelector(`[name=${name}]`).value;
    const words = value("words").toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    for (const question of questions) {
      const { set, results } = question.dataset;
      const text = question.firstElementChild.textContent.toLowerCase();
      const keep = (value("set") === "" || value("set") === set)
        && words.every((word) => text.includes(word))
        && fits(results, value("first"), value("first-is"))
        && fits(results, value("second"), value("second-is"));
      question.hidden = !keep;
      left += keep ? 1 : 0;
    }
    count.textContent = `${left} of ${questions.length} questions`;
  };
  form.addEventListener("input", filter);
  form.hidden = false;
  filter();
}
