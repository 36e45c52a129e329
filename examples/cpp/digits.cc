// SPDX-License-Identifier: Apache-2.0
//
// Reads a digit with a bundle, from C++: c++ -std=c++17 digits.cc -lnndeploy -lpthread -o digits && ./digits digits.nnd
// A second word is a file that `nndeploy tune --decisions` wrote on such a machine.
#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "nndeploy.hpp"

int main(int count, char **words) try {
  std::ifstream file(count > 2 ? words[2] : "/dev/null");
  const std::string decisions{std::istreambuf_iterator<char>(file), {}};
  const nndeploy::Program program(count > 1 ? words[1] : "digits.nnd", 0, decisions);
  if (*program.decisions_note()) std::cerr << program.decisions_note() << "\n";
  nndeploy::Call call(program);
  std::array<float, 64> pixels{};
  for (int i = 0; i < 64; i++) pixels[i] = i % 8 > 2 && i % 8 < 5 ? 16 : 0;  // an upright stroke
  call.set("image", pixels.data(), {1, 1, 8, 8});
  call.run();
  const nndeploy::View<float> scores = call.output<float>("probabilities");
  const float *best = std::max_element(scores.begin(), scores.end());
  std::cout << best - scores.begin() << ", probability " << *best << "\n";
} catch (const nndeploy::Error &error) {
  std::cerr << error.what() << "\n";
  return error.code;
}
